// Events of a stream that wait until it is known whether their units are cancelled, and whether they
// are of idle iterations.
//
// Purpose     What reads events once adds them to their units as they come, so it must know how a
//             unit ends when it begins (tso/model/cancelled_units.h says what cancelling means).
//             Parts of the stream are held from the first unit on whose end has not come; those
//             given out have kCancelledBegin where a unit is cancelled. Their order and events
//             stay. Likewise loads, locked operations and locks of which the next event of the thread, or
//             a few more, decide whether they are idle (tso/model/idle_iterations.h).
// Bound       More than `most` events are not held: the unit that all wait for is let go of. Where
//             units may be cancelled (the input says so, or one was) it goes without being one:
//             so does what waits to be idle, where the thread has been in a loop there before.
//             no violation is told that a cancel would take away. If it ends all the same,
//             taken_apart() counts it, and a clean verdict is none. Elsewhere it goes as the unit
//             that it is. If it is cancelled all the same, misjudged() counts it, and nothing that
//             was found means anything.
// End         A unit that is still open stays one, but where the input says that units may be
//             cancelled: it may have been about to be. The same holds where events are lost.
// Complexity  O(1) for an event. Memory: `most` events and a part.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "monitor/events/event_source.h"
#include "monitor/events/places.h"
#include "online/stream/event_merge.h"
#include "tso/model/idle_iterations.h"
#include "tso/model/trace.h"

namespace tsomon {

class HeldUnits {
 public:
  static constexpr uint64_t kMost = 1U << 20;  // events

  struct Part {
    EventBlock events;
    BlockOrigin origin;
    std::vector<EventLoss> losses;  // before the events
  };

  enum class Hold : uint8_t { kAll, kIdleOnly };  // kIdleOnly: units are taken as they begin

  explicit HeldUnits(uint64_t most = kMost, Hold hold = Hold::kAll)
      : most_(most),
        hold_units_(hold == Hold::kAll),
        idle_([this](uint64_t number, bool idle) { settle(number, idle); }) {}
  HeldUnits(const HeldUnits&) = delete;
  HeldUnits& operator=(const HeldUnits&) = delete;

  // Before the first part: what makes of locations places of the program. Counts of references there
  // are left out.
  void know_places(Places places);
  // The input says that units may be cancelled.
  void expect_cancels() { said_ = hold_units_ = true; }
  // The next part. `part` is left without contents, with memory that serves again.
  void add(Part& part);
  void finish();  // there are no more
  // Nothing has come for a while: what waits to be idle waits no more.
  void let_idle_go();
  // What comes next and waits for nothing any more; false: nothing does.
  bool take(Part& part);

  uint64_t taken_apart() const { return taken_apart_; }
  uint64_t misjudged() const { return misjudged_; }
  uint64_t cancelled() const { return cancelled_; }  // units; also those taken apart before

 private:
  enum class How : uint8_t { kWaits, kUnit, kNone };
  // Of a unit, or what may be idle.
  struct Begin {
    Event* event = nullptr;  // in a part that is held
    How how = How::kWaits;
  };
  struct Open {
    uint64_t number = 0;  // of its Begin
    How how = How::kWaits;
  };
  struct Held {
    Part part;
    uint64_t last_begin = 0;  // numbers of begins in it are below this
  };

  void end(std::vector<Open>& open, Event& event);
  void decide(uint64_t number, bool is_unit);
  void decide_open(std::vector<Open>& open);
  void settle(uint64_t number, bool idle);
  void pop_decided();
  void lose(const EventLoss& loss);
  void let_go();
  void release();

  uint64_t most_;
  bool hold_units_;
  bool said_ = false;
  bool seen_ = false;  // a cancel
  std::deque<Held> held_;
  std::vector<Part> spare_;              // for their memory
  size_t ready_ = 0;                     // the first of held_
  uint64_t waiting_ = 0;                 // events of the others
  std::deque<Begin> begins_;             // from the first undecided one on
  uint64_t first_begin_ = 0;             // its number
  std::vector<std::vector<Open>> open_;  // innermost last, by thread
  Places places_;
  IdleIterations idle_;
  uint64_t taken_apart_ = 0;
  uint64_t misjudged_ = 0;
  uint64_t cancelled_ = 0;
};

// For reports; `units` of HeldUnits::taken_apart() and misjudged().
std::string taken_apart_text(uint64_t units);
std::string misjudged_text(uint64_t units);

}  // namespace tsomon
