// Places of the program, as they are shown, by the locations of events.
//
// Purpose     Compilers give one place several instructions: loops are known by their places
//             (tso/model/idle_iterations.h). And what the C++ library does for its own ends is no
//             event of a unit.
// References  Copies of a shared_ptr count in a word that every thread changes, whoever reads what it
//             points to. What the library does there is no access of the unit that has the copy, as
//             with locks (docs/theory.md, "Waiting inside of a unit"); a locked operation still
//             empties the store buffer.
// Waits       std::atomic::wait, semaphores, latches and barriers look at the word once more before
//             they ask whether they may go on, for the kernel, should they sleep; and they count
//             themselves in a word that many atomics share. Nobody acts on what was read. Futures look
//             at a word, too: what they stand for is memory beside it, whose accesses count.
// Misses      Counts that a program has made itself: they are data of it. Without debugging
//             information nothing says where the library counts (monitor/process/symbols.h). What
//             orders a destructor behind the last use by another thread is such a count: it is left
//             out, too.
// Complexity  One look-up of the text for each location.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tso/model/trace.h"

namespace tsomon {

class Places {
 public:
  // Symbols::place_text() with Symbols::kWithin in between
  using Text = std::function<std::string(uint32_t location)>;
  using Plain = std::function<uint32_t(uint32_t location)>;  // Symbols::without_place
  using Waits = std::function<bool(uint32_t location)>;      // EventSource::waits

  Places() = default;  // they are not known
  explicit Places(Text text, Plain plain = {}, Waits waits = {})
      : text_(std::move(text)), plain_(std::move(plain)), waits_(std::move(waits)) {}

  // Different locations: whether compilers made them of one place, or of one line, called from the same ones.
  bool same(uint32_t a, uint32_t b);
  bool same_line(uint32_t a, uint32_t b);
  // A locked operation or atomic load by which the library counts references, or waits for an atomic.
  bool is_library_own(const Event& event);
  // A value that was read by an atomic load, at a place where the code waits for it.
  bool waits(const Event& event);
  // Loops have been looked for: what else nobody needs goes, digests and which place of its line it is.
  void forget(Event& event);

 private:
  struct Place {
    std::string text;
    bool own = false;
    std::optional<bool> waits;
  };
  Place& place(uint32_t location);

  static constexpr uint32_t kUnknown = Event::kNoLocation;

  Text text_;
  Plain plain_;
  Waits waits_;
  std::vector<uint32_t> without_;  // by location
  std::unordered_map<uint32_t, Place> places_;
};

// Of a whole trace: what the library does for its own ends, and idle iterations (tso/model/idle_iterations.h).
void leave_out_waiting(Trace& trace);

}  // namespace tsomon
