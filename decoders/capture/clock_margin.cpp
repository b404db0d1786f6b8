#include "decoders/capture/clock_margin.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tsomon::capture {

void ClockMargin::add(const ClockEntry& entry, uint64_t place) {
  // One that is told once more has seen nothing new.
  const bool again = any() && entry.since == since_ && entry.until == last_until_;
  measurements_ += again ? 0 : 1;
  since_ = entry.since;
  last_until_ = entry.until;
  if (place != place_) {
    before_ = std::exchange(place_, place);
  }
  backwards_ = std::max(backwards_, entry.backwards);
  early_ = std::max(early_, entry.early);
  until_ = std::max(until_, std::min(entry.until, static_cast<uint64_t>(kMost)));
  if (entry.margin > static_cast<uint64_t>(kMost)) {
    trusted_ = false;
  } else {
    margin_ = std::max(margin_, entry.margin);
    last_margin_ = entry.margin;
  }
  if (trusted() && !again) {
    good_ = {before_, entry.since, margin_};
  }
}

ClockMargin::Shown ClockMargin::shown(int64_t allowed) const {
  const auto most = static_cast<uint64_t>(allowed);
  if (!trusted() || least() > most) {
    return Shown::kMoved;
  }
  return last_margin_ <= most ? Shown::kGood : Shown::kNothing;
}

std::string ClockMargin::problem(const std::string& from) const {
  if (trusted()) {
    return {};
  }
  return fmt::format(
      "the processors' time-stamp counters are not to be trusted{}: {}; no order between threads "
      "is "
      "claimed{}",
      from.empty() ? "" : " from " + from + " on",
      !trusted_   ? "messages between processors contradict one another"
      : !covered_ ? "they were not compared again when recording ended"
                  : fmt::format("a stamp went back by {} cycles, where {} were measured at most",
                                backwards_, margin_),
      from.empty() ? "" : " from there on");
}

void begin_at(EventBlock& block, Event& event, int64_t lo) {
  if (event.has_hi != 0) {
    event.lo = lo;  // the end is beside it
    return;
  }
  const auto more = static_cast<uint64_t>(event.lo) - static_cast<uint64_t>(lo);
  const uint64_t span = event.has_extras() ? more : more + event.span_or_extra;
  if (!event.has_extras() && span <= UINT32_MAX) {
    event.span_or_extra = static_cast<uint32_t>(span);
    event.lo = lo;
    return;
  }
  const auto read = block.read_value(event);
  const auto write = block.write_value(event);
  const int64_t hi = block.hi(event);
  event.lo = lo;
  event.has_read_value = event.has_write_value = 0;
  event.span_or_extra = 0;
  block.complete(event, hi, read, write);
}

void widen(EventBlock& block, size_t begin, int64_t margin, bool lock_stamps) {
  if (margin == 0) {
    return;
  }
  for (size_t i = begin; i != block.events.size(); ++i) {
    Event& event = block.events[i];
    const int64_t lo = widened(event.lo, margin);
    if (lock_stamps && is(event, kinds::kLocks)) {
      const auto stamp = static_cast<uint64_t>(event.lo);
      const int64_t hi = block.hi(event);
      event.lo = lo;
      event.has_hi = 0;
      event.span_or_extra = 0;
      block.complete(event, hi, {}, stamp);
      continue;
    }
    begin_at(block, event, lo);
  }
}

}  // namespace tsomon::capture
