#include "monitor/process/heap_objects.h"

#include <fmt/format.h>

namespace tsomon {

void HeapObjects::change(const Event& event, uint64_t number) {
  if (const auto live = live_.find(event.address); live != live_.end()) {
    live->second->second.to = number;
    live_.erase(live);
  }
  if (event.kind() != EventKind::kAllocate || event.size == 0) {
    return;
  }
  if (oldest_first_.size() == kMaxObjects) {
    const auto oldest = oldest_first_.front();
    oldest_first_.pop_front();
    if (const auto live = live_.find(oldest->first);
        live != live_.end() && live->second == oldest) {
      live_.erase(live);
    }
    objects_.erase(oldest);
  }
  const auto added =
      objects_.emplace(event.address, Object{event.size, event.location, number, UINT64_MAX});
  oldest_first_.push_back(added);
  live_[event.address] = added;
}

std::optional<HeapObjects::Place> HeapObjects::find(uint64_t address, uint64_t number) const {
  const Object* best = nullptr;
  uint64_t begin = 0;
  auto at = objects_.upper_bound(address);
  for (int passed = 0; at != objects_.begin() && passed < kMaxPassed; ++passed) {
    --at;
    const Object& object = at->second;
    const bool covers = address - at->first < object.size;
    if (covers && object.from <= number && number <= object.to &&
        (best == nullptr || best->from < object.from)) {
      best = &object;
      begin = at->first;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(Place{best->location, address - begin});
}

std::string object_name(const std::string& site, uint64_t offset) {
  return fmt::format("object({}){}", site.empty() ? "?" : site,
                     offset == 0 ? std::string() : fmt::format("+0x{:x}", offset));
}

}  // namespace tsomon
