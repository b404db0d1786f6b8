// What the measurements in a capture say of its stamps, and the intervals that follow from it.
//
// Source      Theory section 5.2 with clocks that agree only within a bound: e comes before f for
//             certain when hi(e) + margin < lo(f).
// Margin      That of the widest measurement: between two measurements the larger one holds, and
//             a drift shows as a margin that grows. No measurement (older captures, clock=trust):
//             0, their stamps were trusted.
// Widening    Every interval begins `margin` earlier: then hi(e) < lo(f) says the same, for all
//             events alike. There is a time common to all processors in which a stamp is ahead of
//             its moment by a number from 0 to the margin, the same for all stamps of a processor
//             (monitor/probe/clock_meter.h). So [lo - margin, hi] is where the event lies in that
//             time. (lo - floor(margin / 2) and hi + ceil(margin / 2) would be the same, with that
//             time shifted.) The order of events by `lo` does not change.
// Locks       Stamps of events of one lock grow from holder to holder (last_stamps.h), whatever the
//             margin. Where intervals are widened, events of locks carry their stamp as the value
//             that they write, which says that events of their lock come in the order of `lo`; the
//             interval says only how they lie to what is not of the lock (tso/model/relation.cpp).
// Live        What is judged before later measurements are known allows for more than the first one
//             asks for (allowed()). One that is wider still says that counters moved only where a
//             message was read so much before it was sent (early). Else it says nothing, as if it
//             had not been made: messages took longer, as they do when a virtual machine's
//             processors run on cores that share less (155 cycles became 640 to 740 where that was
//             seen). The next one that is narrow enough stands for the time before it, too.
// Trust       A measurement that contradicts itself, a stamp that went back by more than the
//             margin, or an end without a measurement: the clock is untrusted from the last
//             good measurement on, the last one up to which nothing of that kind was seen.
//             What was recorded before it began keeps its bounds: the counters differed by no
//             more than its margin then, as ever between two measurements (clock_entry.h),
//             and whatever they did comes later. Which records these are stamps cannot tell,
//             since a counter may have gone back after them. Their place in the file can: a
//             chunk that stands before the one which had the clock before that
//             measurement was written before it began, by whichever thread. (The probe
//             repeats what it knows when a measurement begins.) Of a chunk that came whole
//             only later that holds for the parts of it that stand there, but for their last
//             records, which may not have been finished. All other records have no stamps
//             (ThreadStream::distrust()): they come after the last good stamp of their
//             thread, by program order. What waits for a stamp at that point is open to the
//             end. Events of locks carry no value then (see Locks): those on the two sides
//             could not be put into one order.
// End         Threads that run on when recording ends are cut at a stamp. What was recorded is
//             then all that others have heard of, unless stamps may go back: then nothing is cut
//             by a stamp that may have come before the end, and a thread that ran on is a
//             problem.
// Thread-safety: plain data and pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "decoders/capture/clock_entry.h"
#include "tso/model/trace.h"

namespace tsomon::capture {

class ClockMargin {
 public:
  // Beyond this stamps order nothing.
  static constexpr int64_t kMost = int64_t{1} << 60;

  // What later measurements may ask for where this is the first one.
  static int64_t allowed(int64_t first) {
    const uint64_t more = allowed_margin(static_cast<uint64_t>(first));
    return static_cast<int64_t>(std::min(more, static_cast<uint64_t>(kMost)));
  }

  // Counters may differ by so much, whatever is measured.
  void at_least(int64_t cycles) {
    margin_ = std::max(margin_, static_cast<uint64_t>(std::clamp<int64_t>(cycles, 0, kMost)));
  }
  // `place`: of its chunk in the file, 0: not known.
  void add(const ClockEntry& entry, uint64_t place = 0);
  bool any() const { return measurements_ != 0; }
  // Those that were told once more are not counted again.
  uint64_t measurements() const { return measurements_; }
  bool trusted() const { return trusted_ && covered_ && backwards_ <= margin_; }
  // While it is not trusted: chunks that end before this place of the file may be. 0: none.
  uint64_t trusted_places() const { return good_.places; }
  // Stamps from here on are not; of the last good measurement.
  uint64_t trusted_since() const { return good_.since; }
  // What holds in those chunks becomes what holds.
  void keep_good() { margin_ = good_.margin; }
  // Recording ended at this stamp. Without a measurement since nothing is known of what came after
  // the one before: then it is not trusted.
  void end_at(uint64_t cut) { covered_ = !any() || cut <= until_ + margin_; }
  // Whether what comes later may have a smaller stamp, also when it has heard of what came before:
  // messages between threads take their time, and where none was seen that went back, counters
  // differ by less.
  bool may_go_back() const { return early_ != 0 || backwards_ != 0; }
  // What the last measurement shows of a clock for which `allowed` cycles are allowed.
  enum class Shown : uint8_t { kGood, kMoved, kNothing };
  Shown shown(int64_t allowed) const;
  int64_t last_margin() const { return static_cast<int64_t>(last_margin_); }
  // What stamps and messages have shown: some counters differ by so many cycles at least.
  uint64_t least() const { return std::max(backwards_, early_); }
  // In cycles; what is trusted.
  int64_t margin() const { return static_cast<int64_t>(margin_); }
  // What was recorded with a later stamp came after the end of recording for certain.
  int64_t end_of(uint64_t cut) const {
    const auto end = static_cast<int64_t>(std::min(cut, static_cast<uint64_t>(kMost)));
    return may_go_back() ? end + margin() : end;
  }
  // Why it is not trusted. `from`: and since when, as text; empty: nowhere.
  std::string problem(const std::string& from = {}) const;

 private:
  uint64_t measurements_ = 0;
  bool trusted_ = true;
  bool covered_ = true;
  uint64_t until_ = 0;
  uint64_t margin_ = 0;
  uint64_t backwards_ = 0;
  uint64_t early_ = 0;
  uint64_t since_ = 0;  // of the last entry
  uint64_t last_until_ = 0;
  uint64_t last_margin_ = 0;
  uint64_t place_ = 0;   // of the chunk that came last
  uint64_t before_ = 0;  // of the one before it
  // The last measurement up to which all was well.
  struct Good {
    uint64_t places = 0;
    uint64_t since = 0;
    uint64_t margin = 0;
  };
  Good good_;
};

inline constexpr const char* kRanOn =
    "threads ran on when recording ended, and stamps of different threads do not say what came "
    "before that";

// Intervals of the events from number `begin` on begin so much earlier; open ones stay as they are.
// `lock_stamps`: events of locks get their stamps as values.
void widen(EventBlock& block, size_t begin, int64_t margin, bool lock_stamps = true);
// The interval of an event of the block begins at `lo`, which is not later than it did.
void begin_at(EventBlock& block, Event& event, int64_t lo);
inline int64_t widened(int64_t lo, int64_t margin) {
  return lo < kTimeMin + margin ? kTimeMin : lo - margin;
}

}  // namespace tsomon::capture
