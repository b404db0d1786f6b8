#include "tso/model/location_table.h"

#include <algorithm>
#include <unordered_map>

#include "tso/support/work.h"

namespace tsomon {
namespace {

struct KeyHash {
  size_t operator()(const LocationKey& key) const {
    uint64_t hash = (key.address ^ (static_cast<uint64_t>(key.size) << 48)) * 0x9E3779B97F4A7C15ULL;
    return hash ^ (hash >> 29);
  }
};

}  // namespace

LocationTable::LocationTable(const Trace& trace) {
  std::unordered_map<LocationKey, LocationId, KeyHash> ids;
  of_event_.resize(trace.events.size(), kNone);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (is(event, kinds::kAccesses)) {
      const LocationKey key{event.address, event.size};
      const auto [at, is_new] = ids.try_emplace(key, size());
      if (is_new) {
        keys_.push_back(key);
      }
      of_event_[i] = at->second;
    }
  }
  find_overlaps();
}

void LocationTable::find_overlaps() {
  overlaps_.resize(keys_.size());
  std::vector<LocationId> by_address;
  for (LocationId id = 0; id < size(); ++id) {
    overlaps_[id].push_back(id);
    if (keys_[id].size != 0) {
      by_address.push_back(id);
    }
  }
  std::sort(by_address.begin(), by_address.end(), [&](LocationId a, LocationId b) {
    return keys_[a].address != keys_[b].address ? keys_[a].address < keys_[b].address
                                                : keys_[a].size < keys_[b].size;
  });
  // Sweep: `open` holds the ranges that may reach into the next one.
  std::vector<LocationId> open;
  for (const LocationId id : by_address) {
    spend(1 + 2 * open.size());
    std::erase_if(open, [&](LocationId other) { return !overlap(keys_[other], keys_[id]); });
    for (const LocationId other : open) {
      overlaps_[other].push_back(id);
      overlaps_[id].push_back(other);
    }
    open.push_back(id);
  }
}

}  // namespace tsomon
