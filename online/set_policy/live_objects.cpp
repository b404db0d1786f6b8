#include "online/set_policy/live_objects.h"

#include <algorithm>

namespace tsomon {

bool LiveObjects::overlaps_any(const LocationKey& key) const {
  bool any = false;
  for_each_overlapping(key, [&](Slot) { any = true; });
  return any;
}

LiveObjects::Ended LiveObjects::end(Live::const_iterator at, const Event& by) {
  const Slot slot = at->second;
  Object& object = objects_[slot];
  ++object.birth;
  free_.push_back(slot);
  live_.erase(at);
  return {slot, object.accesses.of_others(by.thread) < by.lo};
}

LiveObjects::Ended LiveObjects::free(const Event& event) {
  const auto found = live_.find(event.address);
  return found == live_.end() ? Ended() : end(found, event);
}

bool LiveObjects::allocate(const Event& event, int64_t hi, uint64_t index,
                           std::vector<Ended>* ended) {
  any_ = true;
  const uint64_t limit = event.address + event.size;
  for (auto at = first_near(event.address); at != live_.end() && at->first < limit;) {
    const auto next = std::next(at);
    if (at->first + objects_[at->second].size > event.address) {
      ended->push_back(end(at, event));
    }
    at = next;
  }
  if (free_.empty()) {
    free_.push_back(static_cast<Slot>(objects_.size()));
    objects_.emplace_back();
  }
  const Slot slot = free_.back();
  free_.pop_back();
  Object& object = objects_[slot];
  object.address = event.address;
  object.size = event.size;
  object.thread = event.thread;
  object.begin_hi = hi;
  object.begin = index;
  object.accesses = Reach();
  live_[event.address] = slot;
  return forget_strays(event, &object.accesses);
}

// The lines of the new object hold something now, and what accessed them may outlast it, too.
// False: another thread's access may be to it.
bool LiveObjects::forget_strays(const Event& event, Reach* accesses) {
  bool certain = everywhere_.of_others(event.thread) < event.lo;
  const uint64_t first = event.address >> kLineShift;
  const uint64_t last = (event.address + event.size - 1) >> kLineShift;
  const auto look = [&](const Stray& stray) {
    accesses->add(stray.accesses);
    certain = certain && stray.accesses.of_others(event.thread) < event.lo;
  };
  if (last - first >= strays_.size()) {
    for (auto at = strays_.begin(); at != strays_.end();) {
      if (at->first >= first && at->first <= last) {
        look(at->second);
        at = strays_.erase(at);
      } else {
        ++at;
      }
    }
    return certain;
  }
  for (uint64_t line = first; line <= last; ++line) {
    if (const auto at = strays_.find(line); at != strays_.end()) {
      look(at->second);
      strays_.erase(at);
    }
  }
  return certain;
}

bool LiveObjects::is_stray(const Event& event, int64_t hi) {
  const uint64_t line = event.address >> kLineShift;
  const bool one_line = (event.address + event.size - 1) >> kLineShift == line;
  if (one_line) {
    if (const auto at = strays_.find(line); at != strays_.end() && at->second.empty_line) {
      at.value().accesses.add(event.thread, hi);
      return true;
    }
  }
  if (overlaps_any({event.address, event.size})) {
    return false;
  }
  remember_stray(event, hi);
  return true;
}

void LiveObjects::remember_stray(const Event& event, int64_t hi) {
  const uint64_t first = event.address >> kLineShift;
  const uint64_t last = (event.address + event.size - 1) >> kLineShift;
  if (last - first >= kMaxLines) {
    return everywhere_.add(event.thread, hi);
  }
  for (uint64_t line = first; line <= last; ++line) {
    Stray& stray = strays_[line];
    stray.accesses.add(event.thread, hi);
    stray.empty_line = !overlaps_any({line << kLineShift, 1U << kLineShift});
  }
  if (strays_.size() >= drop_at_) {
    drop_old_strays(event.lo);
  }
}

void LiveObjects::drop_old_strays(int64_t now) {
  for (auto at = strays_.begin(); at != strays_.end();) {
    at = at->second.accesses.hi < now ? strays_.erase(at) : std::next(at);
  }
  if (strays_.size() > kMaxStrays) {
    for (const auto& [line, stray] : strays_) {
      everywhere_.add(stray.accesses);
    }
    strays_.clear();
  }
  drop_at_ = 2 * strays_.size() + 4096;
}

}  // namespace tsomon
