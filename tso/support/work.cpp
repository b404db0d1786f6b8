#include "tso/support/work.h"

#include <algorithm>

#include "tso/support/mapped_memory.h"

namespace tsomon {
namespace {

HeapHooks heap_hooks;

uint64_t saturated(uint64_t at_first, uint64_t each, uint64_t count) {
  const unsigned __int128 all =
      static_cast<unsigned __int128>(each) * count + static_cast<unsigned __int128>(at_first);
  return all > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(all);
}

}  // namespace

namespace work_internal {

constinit thread_local ThreadWork this_thread;

void tell_meter() {
  ThreadWork& mine = this_thread;
  const uint64_t work = mine.pending;
  mine.pending = 0;
  if (mine.meter == nullptr) {
    return;
  }
  if (mine.counted) {
    mine.meter->add_work(work);
    if (mine.meter->over_work()) {
      throw WorkEnded(WorkLimit::kWork);
    }
  }
  if (mine.meter->stop_asked()) {
    throw WorkEnded(WorkLimit::kStopped);
  }
}

}  // namespace work_internal

using work_internal::this_thread;

const char* limit_text(WorkLimit limit) {
  switch (limit) {
    case WorkLimit::kStopped:
      return "interrupted";
    case WorkLimit::kWork:
      return "the analysis exceeds its bound on work";
    case WorkLimit::kMemory:
      break;
  }
  return "the analysis exceeds its bound on memory";
}

WorkBounds WorkBudget::of(uint64_t events) const {
  return {with_effort(saturated(work_at_first, work_per_event, events)),
          saturated(bytes_at_first, bytes_per_event, events)};
}

WorkMeter::WorkMeter(WorkBounds bounds, const StopFlag* stop)
    : bounds_(bounds),
      max_bytes_(bounds.max_bytes),
      stop_(stop),
      outer_(this_thread.meter),
      counted_outside_(outer_ != nullptr && this_thread.counted),
      effort_(outer_ != nullptr ? outer_->effort() : 1) {
  if (counted_outside_ && outer_->max_work() != UINT64_MAX) {
    const uint64_t used = outer_->work() + this_thread.pending;
    const uint64_t all = outer_->max_work();
    bounds_.max_work = std::min(bounds_.max_work, all - std::min(all, used));
  }
}

WorkMeter::~WorkMeter() {
  if (counted_outside_) {
    outer_->add_work(work());
  }
}

bool WorkMeter::add_bytes(int64_t bytes) noexcept {
  const int64_t now = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t most = most_bytes();
  while (now > most && !most_bytes_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  const bool fits = now <= 0 || static_cast<uint64_t>(now) <= max_bytes();
  if (!fits) {
    over_bytes_.store(true, std::memory_order_relaxed);
  }
  return (outer_ == nullptr || outer_->add_bytes(bytes)) && fits;
}

void WorkMeter::grow(uint64_t bytes) noexcept {
  if (bounds_.grows) {
    max_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  if (outer_ != nullptr) {
    outer_->grow(bytes);
  }
}

void set_heap_hooks(const HeapHooks& hooks) { heap_hooks = hooks; }

void expect_bytes(uint64_t bytes) {
  WorkMeter* const meter = this_thread.meter;
  if (meter != nullptr && !meter->has_room_for(bytes)) {
    throw WorkEnded(WorkLimit::kMemory);
  }
}

void more_input(uint64_t bytes) {
  if (this_thread.meter != nullptr) {
    this_thread.meter->grow(bytes * kInputBudget.bytes_per_event);
  }
}

uint64_t with_effort(uint64_t bound) {
  const double effort = this_thread.meter != nullptr ? this_thread.meter->effort() : 1;
  if (effort == 1 || bound == 0) {
    return bound;
  }
  const double scaled = effort * static_cast<double>(bound);
  return scaled >= static_cast<double>(UINT64_MAX)
             ? UINT64_MAX
             : std::max(uint64_t{1}, static_cast<uint64_t>(scaled));
}

bool count_mapped(int64_t bytes) noexcept {
  WorkMeter* const meter = this_thread.bounded ? this_thread.meter : nullptr;
  if (meter == nullptr || meter->add_bytes(bytes) || bytes <= 0) {
    return true;
  }
  meter->add_bytes(-bytes);
  return false;
}

bool stop_asked() { return this_thread.meter != nullptr && this_thread.meter->stop_asked(); }

WorkMeter* current_meter() { return this_thread.meter; }

WorkScope::WorkScope(WorkMeter* meter, Counted counted, Heap heap)
    : before_(this_thread), entered_(meter != nullptr) {
  if (!entered_) {
    return;
  }
  if (heap == Heap::kOwn && heap_hooks.create != nullptr) {
    heap_ = heap_hooks.create();
  }
  this_thread.meter = meter;
  this_thread.pending = 0;
  this_thread.bytes = 0;
  this_thread.heap = heap_ != nullptr ? heap_ : before_.heap;
  this_thread.bounded = meter->bounds_bytes();
  this_thread.counted = counted == Counted::kYes && (before_.meter != meter || before_.counted);
}

WorkScope::~WorkScope() {
  if (!entered_) {
    return;
  }
  WorkMeter* const meter = this_thread.meter;
  if (this_thread.counted) {
    meter->add_work(this_thread.pending);
  }
  meter->add_bytes(this_thread.bytes);
  this_thread = before_;
  if (heap_ != nullptr) {
    heap_hooks.end(heap_);
  }
}

WorkPause::WorkPause() : before_(this_thread) { this_thread = work_internal::ThreadWork(); }

WorkPause::~WorkPause() { this_thread = before_; }

}  // namespace tsomon
