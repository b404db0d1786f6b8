// Waits that were never let wake by themselves: whether those would have been without effect.
//
// Purpose     Of an exploration without spurious wake-ups (--no-spurious). A wait in a loop looks
//             again and comes back to where it was; nothing follows from its waking by itself. One
//             that is not in a loop goes on, and executions are missing.
// Method      Each wait, told apart by the state of its thread, is woken in one execution that came
//             to it, and its thread goes on first. It is in a loop if it is back at the wait without
//             an effect (Thread::waits_idle of the runtime). In some executions what it looks for
//             has happened in between, so several are tried.
// Complexity  One execution for each wait that is met, four at most; O(n) for each run of n steps.
// Misses      Of more than 64 waits it is not known.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "offline/explore/program.h"

namespace tsomon::explore {

class QuietWaits {
 public:
  void forget() { waits_.clear(); }
  void note(const Run& run);
  // The place of one that is in no loop, as far as is known; 0: there are too many.
  std::optional<uint64_t> outside_loops(Program& program, Model model) const;

 private:
  struct Wait {
    uint64_t pc = 0;
    std::vector<std::vector<Choice>> ways;  // to its being woken
  };
  std::map<uint64_t, Wait> waits_;
};

}  // namespace tsomon::explore
