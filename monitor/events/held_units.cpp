#include "monitor/events/held_units.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "tso/model/cancelled_units.h"

namespace tsomon {

void HeldUnits::know_places(Places places) {
  places_ = std::move(places);
  idle_.compare_places([this](uint32_t a, uint32_t b) { return places_.same(a, b); },
                       [this](uint32_t a, uint32_t b) { return places_.same_line(a, b); });
}

void HeldUnits::decide(uint64_t number, bool is_unit) {
  Begin& begin = begins_[number - first_begin_];
  begin.how = is_unit ? How::kUnit : How::kNone;
  if (!is_unit) {
    begin.event->set_kind(kCancelledBegin);
  }
  pop_decided();
}

// What waited to be idle, unless it was let go of.
void HeldUnits::settle(uint64_t number, bool idle) {
  if (number < first_begin_) {
    return;
  }
  Begin& waiting = begins_[number - first_begin_];
  if (waiting.how != How::kWaits) {
    return;
  }
  waiting.how = idle ? How::kNone : How::kUnit;
  if (idle) {
    make_idle(*waiting.event);
  }
  pop_decided();
}

void HeldUnits::pop_decided() {
  while (!begins_.empty() && begins_.front().how != How::kWaits) {
    begins_.pop_front();
    ++first_begin_;
  }
}

// Nobody will say how they end.
void HeldUnits::decide_open(std::vector<Open>& open) {
  for (const Open& unit : open) {
    if (unit.how == How::kWaits) {
      decide(unit.number, !said_);
    }
  }
  open.clear();
}

void HeldUnits::lose(const EventLoss& loss) {
  for (ThreadId thread = 0; thread < open_.size(); ++thread) {
    if (loss.thread == EventLoss::kUnknownThread || loss.thread == thread) {
      decide_open(open_[thread]);
    }
  }
  idle_.lost(loss.thread);
}

void HeldUnits::end(std::vector<Open>& open, Event& event) {
  const bool cancels = event.kind() == kUnitCancel;
  seen_ = seen_ || cancels;
  if (open.empty()) {
    return;
  }
  const Open unit = open.back();
  open.pop_back();
  cancelled_ += cancels ? 1 : 0;
  if (unit.how == How::kWaits) {
    decide(unit.number, !cancels);
  } else if (cancels && unit.how == How::kUnit) {
    event.set_kind(EventKind::kUnitEnd);
    ++misjudged_;
  } else if (!cancels && unit.how == How::kNone) {
    event.set_kind(kUnitCancel);
    ++taken_apart_;
  }
}

void HeldUnits::add(Part& part) {
  for (const EventLoss& loss : part.losses) {
    lose(loss);
  }
  held_.push_back({std::exchange(part, {}), 0});
  if (!spare_.empty()) {
    part = std::move(spare_.back());
    spare_.pop_back();
  }
  constexpr uint32_t kBoundaries =
      kind_mask(EventKind::kUnitBegin) | kind_mask(EventKind::kUnitEnd) | kind_mask(kUnitCancel);
  for (Event& event : held_.back().part.events.events) {
    bool waits = false;
    if (places_.is_library_own(event)) {
      make_idle(event);
    } else {
      waits = idle_.add(held_.back().part.events, event, first_begin_ + begins_.size());
    }
    places_.forget(event);
    if (waits) {
      begins_.push_back({&event, How::kWaits});
      continue;
    }
    if (!is(event, kBoundaries) || !hold_units_) {
      continue;
    }
    if (event.thread >= open_.size()) {
      open_.resize(event.thread + 1);
    }
    std::vector<Open>& open = open_[event.thread];
    if (event.kind() == EventKind::kUnitBegin) {
      open.push_back({first_begin_ + begins_.size(), How::kWaits});
      begins_.push_back({&event, How::kWaits});
    } else {
      end(open, event);
    }
  }
  held_.back().last_begin = first_begin_ + begins_.size();
  waiting_ += held_.back().part.events.events.size();
  release();
  while (waiting_ > most_) {
    let_go();
    release();
  }
}

// The unit that all wait for.
void HeldUnits::let_go() {
  if (is(*begins_.front().event, kinds::kLocks)) {
    idle_.lost(begins_.front().event->thread);  // with what is released and acquired after it
    return;
  }
  if (!is(*begins_.front().event, kind_mask(EventKind::kUnitBegin))) {
    settle(first_begin_, idle_.has_repeated(*begins_.front().event));
    return;
  }
  const bool is_unit = !said_ && !seen_;
  for (Open& unit : open_[begins_.front().event->thread]) {
    if (unit.number == first_begin_) {
      unit.how = is_unit ? How::kUnit : How::kNone;
      break;
    }
  }
  decide(first_begin_, is_unit);
}

void HeldUnits::release() {
  while (ready_ != held_.size() && held_[ready_].last_begin <= first_begin_) {
    waiting_ -= held_[ready_].part.events.events.size();
    ++ready_;
  }
}

void HeldUnits::let_idle_go() {
  idle_.finish();
  release();
}

void HeldUnits::finish() {
  idle_.finish();
  for (std::vector<Open>& open : open_) {
    decide_open(open);
  }
  release();
}

bool HeldUnits::take(Part& part) {
  if (ready_ == 0) {
    return false;
  }
  constexpr size_t kSpare = 16;
  std::swap(part, held_.front().part);
  Part& old = held_.front().part;
  if (spare_.size() < kSpare) {
    old.events.clear();
    old.origin.lines.clear();
    old.origin.raised.clear();
    old.losses.clear();
    spare_.push_back(std::move(old));
  }
  held_.pop_front();
  --ready_;
  return true;
}

std::string taken_apart_text(uint64_t units) {
  return fmt::format(
      "{} units that may have been cancelled were not waited for (longer than {} events, or others "
      "overlapped): their accesses were judged one by one",
      units, HeldUnits::kMost);
}

std::string misjudged_text(uint64_t units) {
  return fmt::format(
      "{} units were cancelled that had been taken for units, more than {} events after they began:"
      " nothing found counts; say from the beginning that units may be cancelled "
      "(docs/formats/text-traces.md)",
      units, HeldUnits::kMost);
}

}  // namespace tsomon
