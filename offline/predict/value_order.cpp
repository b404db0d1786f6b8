#include "offline/predict/value_order.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::predict {
namespace {

template <typename List>
void forget(List* list, ThreadId thread, int64_t lo) {
  const auto at = std::find_if(list->begin(), list->end(), [&](const auto& one) {
    return one.thread == thread && one.lo == lo;
  });
  if (at != list->end()) {
    list->erase(at);
  }
}

}  // namespace

void ValueOrder::add(const Item& item) {
  const ThreadId thread = item.event.thread;
  latest_ = std::max(latest_, item.event.lo);
  if (thread >= threads_.size()) {
    threads_.resize(thread + 1);
  }
  Thread& mine = threads_[thread];
  mine.items.push_back(item);
  mine.over.push_back(item.hi);
  for (size_t i = mine.over.size() - 1; i > 0 && mine.over[i - 1] > item.hi; --i) {
    spend(1);
    mine.over[i - 1] = item.hi;
  }
  const Place place = place_of(item.event);
  if (item.read) {
    readers_[{place, *item.read}].push_back({thread, item.event.lo, item.hi});
  }
  if (item.written) {
    writers_[{place, *item.written}].push_back({thread, item.event.lo, item.hi});
  }
  ++pending_;
}

// Another thread's event that began by then does.
bool ValueOrder::brings(ThreadId except, const Place& place, uint64_t value, int64_t until) const {
  const auto found = writers_.find({place, value});
  return found != writers_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const Access& one) { return one.thread != except && one.lo <= until; });
}

bool ValueOrder::wants(ThreadId except, const Place& place, uint64_t value, int64_t until,
                       int64_t over) const {
  const auto found = readers_.find({place, value});
  return found != readers_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const Access& one) {
           return one.thread != except && one.lo <= until && one.hi <= over;
         });
}

// A load of another thread that began by then, and was over by then, reads a value that nobody
// pending writes: the location holds that one first.
bool ValueOrder::begins_with_another(ThreadId except, const Place& place, uint64_t value,
                                     int64_t until, int64_t over) const {
  for (auto at = readers_.lower_bound({place, 0}); at != readers_.end() && at->first.first == place;
       ++at) {
    spend(1);
    if (at->first.second != value && !writers_.contains(at->first) &&
        wants(except, place, at->first.second, until, over)) {
      return true;
    }
  }
  return false;
}

ValueOrder::Waits ValueOrder::waits(ThreadId thread, const Item& item, int64_t over) const {
  if (!is(item.event, kinds::kAccesses)) {
    return Waits::kNot;
  }
  const Place place = place_of(item.event);
  const auto overwrites = [&](uint64_t held) {
    return item.written && *item.written != held && wants(thread, place, held, over);
  };
  const auto held = memory_.find(place);
  if (held == memory_.end()) {
    if (!item.read) {
      return Waits::kNot;
    }
    // What may yet come brings nothing to whoever is over.
    const bool brought = brings(thread, place, *item.read, over);
    if ((brought || may_come(over)) &&
        begins_with_another(thread, place, *item.read, over, brought ? INT64_MAX : latest_)) {
      return Waits::kForValue;
    }
    return overwrites(*item.read) ? Waits::kToOverwrite : Waits::kNot;
  }
  if (item.read && *item.read != held->second) {
    return brings(thread, place, *item.read, over) || may_come(over) ? Waits::kForValue
                                                                     : Waits::kNot;
  }
  return overwrites(held->second) ? Waits::kToOverwrite : Waits::kNot;
}

ValueOrder::Item ValueOrder::take(ThreadId thread) {
  Thread& mine = threads_[thread];
  Item item = mine.items.front();
  mine.items.pop_front();
  mine.over.pop_front();
  --pending_;
  const Place place = place_of(item.event);
  const auto drop = [&](auto* all, uint64_t value) {
    const auto found = all->find({place, value});
    forget(&found->second, thread, item.event.lo);
    if (found->second.empty()) {
      all->erase(found);
    }
  };
  if (item.read) {
    drop(&readers_, *item.read);
    memory_[place] = *item.read;
  }
  if (item.written) {
    drop(&writers_, *item.written);
    memory_[place] = *item.written;
  } else if (is(item.event, kinds::kStores) || is(item.event, kinds::kLocked)) {
    memory_.erase(place);
  }
  return item;
}

std::optional<ValueOrder::Item> ValueOrder::next() {
  if (pending_ == 0 || (!finished_ && pending_ < kLookAhead)) {
    return std::nullopt;
  }
  constexpr ThreadId kNobody = 0xFFFFFFFFU;
  ThreadId first = kNobody;       // that does not wait, by the beginning
  ThreadId pressing = kNobody;    // of those that wait, by the end
  ThreadId overwrites = kNobody;  // likewise, of those that wait for no value
  for (ThreadId thread = 0; thread < threads_.size(); ++thread) {
    spend(1);
    const Thread& mine = threads_[thread];
    if (mine.items.empty()) {
      continue;
    }
    const auto is_first = [&](ThreadId other) {
      return other == kNobody || mine.over.front() < threads_[other].over.front();
    };
    const Waits how = waits(thread, mine.items.front(), mine.over.front());
    if (how != Waits::kNot) {
      pressing = is_first(pressing) ? thread : pressing;
      overwrites = how == Waits::kToOverwrite && is_first(overwrites) ? thread : overwrites;
    } else if (first == kNobody ||
               mine.items.front().event.lo < threads_[first].items.front().event.lo) {
      first = thread;
    }
  }
  const bool press = first == kNobody ||
                     (pressing != kNobody &&
                      threads_[pressing].over.front() < threads_[first].items.front().event.lo);
  const ThreadId next = !press ? first : overwrites != kNobody ? overwrites : pressing;
  // A value may still come.
  if (press && overwrites == kNobody && may_come(threads_[next].over.front())) {
    return std::nullopt;
  }
  return take(next);
}

}  // namespace tsomon::predict
