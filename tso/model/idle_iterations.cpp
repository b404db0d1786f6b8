#include "tso/model/idle_iterations.h"

#include <algorithm>
#include <utility>

namespace tsomon {

void make_idle(Event& event) {
  if (!is(event, kinds::kLocked)) {
    event.set_kind(kIdle);
    return;
  }
  // A fence has no location and no values.
  event.set_kind(EventKind::kFence);
  event.address = 0;
  event.size = 0;
  event.has_read_value = 0;
  event.has_write_value = 0;
  if (event.has_hi == 0) {
    event.span_or_extra = 0;
  }
}

namespace {

constexpr int kPageBits = 12;

// Words of eight bytes of an access, in its first page.
struct Words {
  uint64_t first;
  uint64_t last;
};
Words words_of(const Event& event) {
  const uint64_t end = event.address | ((uint64_t{1} << kPageBits) - 1);
  return {event.address / 8, std::min(end, event.address + event.size - 1) / 8};
}

}  // namespace

bool OwnMemory::is_foreign(const Event& event) const {
  const auto [first, last] = words_of(event);
  for (uint64_t word = first; word <= last; ++word) {
    if (foreign_.contains(word)) {
      return true;
    }
  }
  return false;
}

void OwnMemory::make_foreign(const Event& event, Owner& owner) {
  owner.alone = false;
  const auto [first, last] = words_of(event);
  for (uint64_t word = first; word <= last; ++word) {
    if (foreign_.size() == kMostWords) {
      owner.thread = kSeveral;
      return;
    }
    foreign_.try_emplace(word, true);
  }
}

bool OwnMemory::add(const EventBlock& block, const Event& event) {
  constexpr uint64_t kMostPages = uint64_t{1} << 14;
  if (event.kind() == EventKind::kAllocate) {
    const uint64_t size = event.size != 0 ? event.size : block.write_value(event).value_or(0);
    const uint64_t first = event.address >> kPageBits;
    const uint64_t pages = ((event.address + size) >> kPageBits) - first;
    // Of the pages that are whole in it.
    for (uint64_t page = first + 1; pages < kMostPages && page < first + pages; ++page) {
      if (Owner* const owner = owners_.find(page)) {
        owner->thread = kNobody;
        ++round_;
      }
    }
    return false;
  }
  if (event.size == 0 || !is(event, kinds::kAccesses)) {
    return false;
  }
  if (event.thread >= last_.size()) {
    last_.resize(event.thread + 1);
  }
  const uint64_t page = event.address >> kPageBits;
  if (last_[event.thread].page == page && last_[event.thread].round == round_) {
    return true;
  }
  Owner& owner = *owners_.try_emplace(page, Owner{event.thread, true}).first;
  if (owner.thread == kNobody) {
    owner = {event.thread, owner.alone};
  }
  if (owner.thread == event.thread) {
    if (owner.alone) {
      last_[event.thread] = {page, round_};
    }
    return owner.alone || !is_foreign(event);
  }
  if (owner.thread != kSeveral) {
    round_ += owner.alone ? 1 : 0;
    make_foreign(event, owner);
  }
  return false;
}

// All that waits was no iteration.
void IdleIterations::count_all(OfThread& mine) {
  for (const Access& access : mine.waiting) {
    decide_(access.number, false);
  }
  mine.waiting.clear();
  mine.begin = kNone;
}

// The iteration, and the loads before it that found the same, or that a failed compare-exchange
// makes void.
void IdleIterations::leave_out(OfThread& mine) {
  size_t begin = mine.begin;
  const Access& first = mine.waiting[begin];
  while (begin > 0) {
    const Access& before = mine.waiting[begin - 1];
    if (!before.load || before.address != first.address || before.size != first.size ||
        (!first.failed && before.value != first.value)) {
      break;
    }
    --begin;
  }
  const auto from = mine.waiting.begin() + static_cast<ptrdiff_t>(begin);
  const auto to = mine.waiting.begin() + static_cast<ptrdiff_t>(mine.end);
  std::for_each(from, to, [&](const Access& access) { decide_(access.number, true); });
  mine.address = from->address;
  mine.waiting.erase(from, to);
  mine.begin = kNone;
}

// 1 + where the thread was on that line last, at these bytes, before it went to another one; 0: nowhere.
size_t IdleIterations::begin_of_return(const OfThread& mine, const Access& now) const {
  size_t at = mine.waiting.size();
  while (at > 0 && on_one_line(mine.waiting[at - 1], now)) {
    --at;
  }
  while (at > 0) {
    const Access& before = mine.waiting[at - 1];
    if (on_one_line(before, now) && before.address == now.address && before.size == now.size) {
      return at;
    }
    --at;
  }
  return 0;
}

void IdleIterations::count_steps(OfThread& mine) {
  for (const Step& step : mine.steps) {
    decide_(step.number, false);
  }
  mine.steps.clear();
  mine.held.clear();
}

// The thread goes on with the locks that it has now; or it had them all in the last attempt, and what it did then was not
// recorded. Attempts that got only a part of them had failed.
void IdleIterations::decide_steps(OfThread& mine) {
  struct Attempt {
    size_t end;
    std::vector<uint64_t> locks;
  };
  std::vector<Attempt> attempts;
  std::vector<uint64_t> locks;
  size_t held_now = 0;
  for (size_t i = 0; i < mine.steps.size(); ++i) {
    held_now += mine.steps[i].acquires ? 1 : -1;
    if (mine.steps[i].acquires) {
      locks.push_back(mine.steps[i].address);
    } else if (held_now == 0) {
      attempts.push_back({i + 1, std::exchange(locks, {})});
    }
  }
  const std::vector<uint64_t> held =
      mine.held.empty() && !attempts.empty() ? attempts.back().locks : std::move(mine.held);
  const auto has = [](const std::vector<uint64_t>& all, uint64_t lock) {
    return std::find(all.begin(), all.end(), lock) != all.end();
  };
  size_t at = 0;
  for (const Attempt& attempt : attempts) {
    const bool part = std::all_of(attempt.locks.begin(), attempt.locks.end(),
                                  [&](uint64_t lock) { return has(held, lock); });
    const bool whole = std::all_of(held.begin(), held.end(),
                                   [&](uint64_t lock) { return has(attempt.locks, lock); });
    for (; at < attempt.end; ++at) {
      decide_(mine.steps[at].number, part && !whole);
    }
  }
  mine.steps.erase(mine.steps.begin(), mine.steps.begin() + static_cast<ptrdiff_t>(at));
  count_steps(mine);
}

// Whether it may be one of an attempt.
bool IdleIterations::add_step(OfThread& mine, const EventBlock& block, const Event& event,
                              uint64_t number) {
  const bool acquires = is(event, kinds::kAcquisitions);
  const bool recorded = event.location != Event::kNoLocation && block.hi(event) != event.lo;
  const auto lock = std::find(mine.held.begin(), mine.held.end(), event.address);
  if (!recorded || mine.steps.size() == kMostSteps || (!acquires && lock == mine.held.end())) {
    decide_steps(mine);
    return false;
  }
  mine.steps.push_back({number, event.address, acquires});
  if (acquires) {
    mine.held.push_back(event.address);
  } else {
    mine.held.erase(lock);
  }
  return true;
}

// What comes next in the thread: does it do again what it did?
void IdleIterations::compare(OfThread& mine, const Access& now, bool stores) {
  const auto differs = [&](size_t at) { return stores || mine.waiting[at].value != now.value; };
  if (mine.begin != kNone) {
    const size_t at = mine.begin + (mine.waiting.size() - mine.end);
    if (!same_place(mine.waiting[at], now)) {
      mine.begin = kNone;
    } else if (differs(at)) {
      leave_out(mine);
    } else {
      if (at + 1 == mine.end) {
        leave_out(mine);
      }
      return;
    }
  }
  size_t at = mine.waiting.size();
  while (at > 0 && !same_place(mine.waiting[at - 1], now)) {
    --at;
  }
  at = at != 0 ? at : begin_of_return(mine, now);
  if (at == 0) {
    return;
  }
  mine.begin = at - 1;
  mine.end = mine.waiting.size();
  if (differs(mine.begin) || at == mine.end) {
    leave_out(mine);
  }
}

// What the thread has read right before a locked operation that stores.
void IdleIterations::leave_out_looks(OfThread& mine, const Access& now,
                                     std::optional<uint64_t> written) {
  constexpr uint64_t kAlignment = 8;  // of pointers
  // A count that somebody looks at and then changes is no lock.
  constexpr uint64_t kLowestPointer = uint64_t{1} << 20;
  const auto points = [&](uint64_t value) { return now.size == 8 && value >= kLowestPointer; };
  const bool locks = points(now.value) && now.value % kAlignment == 0 && written == now.value + 1;
  while (!mine.waiting.empty()) {
    const Access& look = mine.waiting.back();
    const bool same = look.load && look.address == now.address && look.size == now.size;
    if (!same || (look.value != now.value &&
                  !(locks && points(look.value) && look.value % kAlignment == 1))) {
      return;
    }
    decide_(look.number, true);
    mine.waiting.pop_back();
  }
}

bool IdleIterations::add(const EventBlock& block, const Event& event, uint64_t number) {
  constexpr uint32_t kTransparent = kind_mask(EventKind::kBranch) | kind_mask(kIdle);
  // Sleeping, what is said of the next acquisition, and a handler that comes in between: it is no part of an attempt.
  constexpr uint32_t kNothingDone = kind_mask(EventKind::kFence) | kind_mask(EventKind::kTry) |
                                    kind_mask(EventKind::kRequest) | kind_mask(EventKind::kSend) |
                                    kind_mask(EventKind::kReceive);
  if (event.thread >= threads_.size()) {
    threads_.resize(event.thread + 1);
  }
  OfThread& mine = threads_[event.thread];
  const bool own = memory_.add(block, event);
  const uint32_t fence = std::exchange(mine.fence, Event::kNoLocation);
  if (event.kind() == EventKind::kFence && event.address != kSleeps) {
    mine.fence = event.location;
    return false;
  }
  if (is(event, kinds::kLocks)) {
    count_all(mine);
    return add_step(mine, block, event, number);
  }
  const bool load = event.kind() == EventKind::kRead;
  if (!mine.steps.empty() && !own && !is(event, kTransparent | kNothingDone)) {
    decide_steps(mine);
  }
  if (is(event, kTransparent) || (load && event.has_read_value == 0) ||
      (own && event.kind() == EventKind::kWrite && !event.atomic())) {
    return false;
  }
  const auto read = block.read_value(event);
  const bool known = (load || event.kind() == EventKind::kReadModifyWrite) && read &&
                     event.location != Event::kNoLocation;
  if (!known) {
    if (!mine.waiting.empty()) {
      count_all(mine);
    }
    return false;
  }
  const bool stores = !load && block.write_value(event) != read;
  const Access now{number,
                   event.address,
                   *read,
                   event.size,
                   event.location,
                   load,
                   load && fence == event.location};
  compare(mine, now, stores);
  if (!stores) {
    mine.waiting.push_back(now);
    if (mine.waiting.size() > 2 * kLongest) {
      decide_(mine.waiting.front().number, false);
      mine.waiting.erase(mine.waiting.begin());
      mine.begin = kNone;
    }
    return true;
  }
  leave_out_looks(mine, now, block.write_value(event));
  count_all(mine);
  return false;
}

bool IdleIterations::has_repeated(const Event& event) const {
  return event.thread < threads_.size() && threads_[event.thread].address == event.address;
}

void IdleIterations::lost(ThreadId thread) {
  if (thread < threads_.size()) {
    count_all(threads_[thread]);
    count_steps(threads_[thread]);
  } else {
    finish();
  }
}

void IdleIterations::finish() {
  for (OfThread& mine : threads_) {
    count_all(mine);
    count_steps(mine);
  }
}

void resolve_idle_iterations(EventBlock& events, IdleIterations::SamePlace same_line) {
  std::vector<uint64_t> idle;
  IdleIterations iterations([&](uint64_t number, bool is_idle) {
    if (is_idle) {
      idle.push_back(number);
    }
  });
  iterations.compare_places({}, std::move(same_line));
  for (uint64_t e = 0; e < events.events.size(); ++e) {
    iterations.add(events, events.events[e], e);
  }
  iterations.finish();
  for (const uint64_t e : idle) {
    make_idle(events.events[e]);
  }
}

}  // namespace tsomon
