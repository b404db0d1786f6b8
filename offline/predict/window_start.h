// What has to be known of a run when a window of its trace begins.
//
// Purpose     Inputs that are larger than memory are looked at in windows of consecutive events.
//             What happened before a window is fixed: its witnesses begin with it. Of that, a
//             window needs the few events whose effect is not over yet, which are put in front of
//             its own (they are *carried*):
//               - acquisitions of locks that are held, as often as they are;
//               - a try whose acquisition or wait has not come;
//               - begins of units that are open;
//               - what is not to be reported (tso/model/channels.h);
//               - the counts of semaphores that have been used.
//             Values need nothing: memory holds at first what the last writes before the window
//             have left there. Neither do forks, nor joins of threads that have ended.
// Fixed       hard_edges.h puts carried events before all others, in their order, and the validator
//             accepts no witness that begins otherwise.
// Complexity  O(locks that the thread holds) for an event.
// Memory      By threads and locks that are held.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tso/model/event.h"

namespace tsomon::predict {

class WindowStart {
 public:
  struct Carried {
    Event event;
    uint64_t line = 0;    // of the input
    uint64_t number = 0;  // in the order of the run
  };

  // The next event of the run comes before the window.
  void pass(const Event& event, uint64_t line);

  uint64_t passed() const { return passed_; }
  // In the order of the run.
  std::vector<Carried> carried() const;
  // Of each thread that has one.
  std::vector<Carried> last_events() const;

 private:
  struct Thread {
    std::vector<Carried> acquisitions;  // of locks that it holds
    std::vector<Carried> units;         // begins of those that are open
    std::optional<Carried> tried;
    std::optional<Carried> ignored;
    std::optional<Carried> last;
  };

  void count(const Carried& now);
  static void release(const Event& event, Thread* thread);

  std::vector<Thread> threads_;
  std::vector<Carried> benign_;
  std::map<std::pair<uint64_t, uint32_t>, Carried> counts_;  // as if set by their last event
  uint64_t passed_ = 0;
};

}  // namespace tsomon::predict
