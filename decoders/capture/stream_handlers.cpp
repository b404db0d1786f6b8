// What signal handlers record stands between the records of what they interrupted.
#include <algorithm>
#include <utility>

#include "decoders/capture/clock_margin.h"
#include "decoders/capture/stream.h"

namespace tsomon::capture {

void ThreadStream::enter_handler(bool settled) {
  open_last_access();
  // Also where another handler ended and nothing was recorded since.
  interrupted_.push_back({std::min(from_, from_before_handler_), settled});
  from_before_handler_ = kTimeMax;
  left_ = false;
  if (held_ == kNotHeld) {
    held_ = events_.events.size();
  }
}

// The last access may come after the handler; so may the load of a copy with its store.
void ThreadStream::open_last_access() {
  std::vector<Event>& events = events_.events;
  if (events.size() == std::exchange(interrupted_at_, events.size())) {
    return;  // by another handler, and nothing was recorded since
  }
  size_t begin = events.size();
  for (; begin != ready_; --begin) {
    const Event& access = events[begin - 1];
    const Event& last = events.back();
    const uint32_t before = records_since(access) - records_since(last);
    const bool copied = before == 1 && access.location != Event::kNoLocation &&
                        access.location == last.location && access.kind() == EventKind::kRead &&
                        last.kind() == EventKind::kWrite;
    if (before != 0 && !copied) {
      break;
    }
  }
  // The events from `begin` on are the last ones; some have a Special already.
  const auto first = std::lower_bound(specials_.begin(), specials_.end(), begin,
                                      [](const Special& one, size_t i) { return one.event < i; });
  const std::vector<Special> had(first, specials_.end());
  specials_.erase(first, specials_.end());
  auto next = had.begin();
  for (size_t i = begin; i != events.size(); ++i) {
    const bool has = next != had.end() && next->event == i;
    specials_.push_back(has ? *next++ : Special{i, false, {}, {}});
    specials_.back().open = true;
    events[i].has_hi = 1;
  }
}

void ThreadStream::leave_handler(uint64_t chunk) {
  enter_chunk(chunk);
  from_before_handler_ = interrupted_.back().from;
  settled_ = interrupted_.back().settled;
  left_ = true;
  interrupted_.pop_back();
}

// After a record, whose events are those from `first` on.
void ThreadStream::settle_handler(size_t first) {
  // A receive that begins earlier comes after less.
  constexpr uint32_t kKeepTheirPlace = kinds::kLocks |
                                       (kinds::kHandOvers & ~kind_mask(EventKind::kReceive)) |
                                       kind_mask(EventKind::kCount);
  left_ = false;
  std::vector<Event>& events = events_.events;
  int64_t lo = kTimeMax;
  for (size_t i = first; i != events.size(); ++i) {
    lo = std::min(lo, events[i].lo);
  }
  for (size_t i = held_; i < first; ++i) {
    if (events[i].lo <= lo || is(events[i], kKeepTheirPlace)) {
      continue;
    }
    if (i < ready_) {
      begin_at(events_, events[i], lo);
    } else {
      events[i].lo = lo;
      waiting_since_ = std::min(waiting_since_, lo);
    }
  }
  if (interrupted_.empty()) {
    held_ = kNotHeld;
  }
}

// What is held back does not begin earlier, nor will.
int64_t ThreadStream::held_since() const {
  if (held_ == kNotHeld) {
    return kTimeMax;
  }
  const std::vector<Event>& events = events_.events;
  return std::min(interrupted_.empty() ? kTimeMax : interrupted_.front().from,
                  held_ < events.size() ? events[held_].lo : kTimeMax);
}

}  // namespace tsomon::capture
