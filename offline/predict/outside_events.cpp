#include "offline/predict/outside_events.h"

#include <algorithm>

namespace tsomon::predict {

void OutsideEvents::add(const Event& event, uint64_t number) {
  if (event.kind() == EventKind::kNotify) {
    notifications_[{event.address, event.size, event.thread}] = number;
    return;
  }
  if (event.size == 0) {
    named_.insert(event.address);
    return;
  }
  uint32_t& size = exchanges_[event.address];
  size = std::max<uint32_t>(size, event.size);
  longest_ = std::max(longest_, size);
}

bool OutsideEvents::exchanged(const Event& a, const Event& b) const {
  const uint64_t first = std::max(a.address, b.address);
  if (a.size == 0 || b.size == 0) {
    return named_.count(first) != 0;
  }
  auto at = exchanges_.upper_bound(first);
  while (at != exchanges_.begin()) {
    --at;
    if (first - at->first >= longest_) {
      return false;
    }
    if (first - at->first < at->second) {
      return true;
    }
  }
  return false;
}

bool OutsideEvents::notified(const Event& wait, uint64_t from) const {
  const auto first = notifications_.lower_bound({wait.address, wait.size, 0});
  for (auto at = first; at != notifications_.end(); ++at) {
    const auto& [address, size, thread] = at->first;
    if (address != wait.address || size != wait.size) {
      break;
    }
    if (thread != wait.thread && at->second >= from) {
      return true;
    }
  }
  return false;
}

void take_exchanged_for_atomic(std::vector<Event>& events) {
  OutsideEvents all;
  for (const Event& event : events) {
    if (event.kind() == EventKind::kReadModifyWrite) {
      all.look(event, 0);
    }
  }
  for (Event& event : events) {
    if (is(event, kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite)) &&
        all.exchanged(event, event)) {
      event.set_atomic();
    }
  }
}

}  // namespace tsomon::predict
