#include "offline/predict/cells.h"

#include <algorithm>

#include "offline/predict/block_names.h"
#include "tso/support/flat_map.h"
#include "tso/support/work.h"

namespace tsomon::predict {

namespace {

// Distinct ranges of bytes and names, in the order of their first access.
class Locations {
 public:
  LocationId number(const Event& event) {
    // Names are numbered from 0: no table of hashes is needed for them.
    const bool direct = event.size == 0 && event.address < kMaxDirect;
    if (direct && event.address >= named_.size()) {
      named_.resize(std::max<size_t>(event.address + 1, 2 * named_.size()), LocationTable::kNone);
    }
    LocationId& first = direct ? named_[event.address]
                               : *ids_.try_emplace(event.address, LocationTable::kNone).first;
    LocationId* id = &first;
    while (*id != LocationTable::kNone && keys_[*id].size != event.size) {
      id = &same_address_[*id];
    }
    if (*id == LocationTable::kNone) {
      *id = static_cast<LocationId>(keys_.size());
      keys_.push_back({event.address, event.size});
      same_address_.push_back(LocationTable::kNone);
      return static_cast<LocationId>(keys_.size() - 1);
    }
    return *id;
  }
  const std::vector<LocationKey>& keys() const { return keys_; }

 private:
  static constexpr uint64_t kMaxDirect = uint64_t{1} << 22;

  std::vector<LocationKey> keys_;
  std::vector<LocationId> same_address_;  // the next one, by id
  std::vector<LocationId> named_;         // the first one, by address
  FlatMap<uint64_t, LocationId> ids_;     // the same
};

}  // namespace

// Each start and each end of a range begins a cell. One that no range covers is never used.
CellTable::CellTable(const Trace& trace) {
  Locations locations;
  of_event_.reserve(trace.events.size());
  for (const Event& event : trace.events) {
    spend(1);
    of_event_.push_back(is(event, kinds::kAccesses)        ? locations.number(event)
                        : event.kind() == EventKind::kFree ? kBlock
                                                           : LocationTable::kNone);
  }
  const std::vector<LocationKey>& keys = locations.keys();
  spans_.resize(keys.size());
  for (const LocationKey& key : keys) {
    if (key.size > 0) {
      starts_.push_back(key.address);
      starts_.push_back(key.address + key.size);
    }
  }
  spend(starts_.size());
  std::sort(starts_.begin(), starts_.end());
  starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  size_ = static_cast<uint32_t>(starts_.size());
  for (LocationId id = 0; id < keys.size(); ++id) {
    const LocationKey& key = keys[id];
    if (key.size > 0) {
      spans_[id] = of_range(key.address, key.size);
    } else {
      spans_[id] = {size_++, 1};
      names_.push_back(key.address);
    }
  }
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (of_event_[i] != kBlock) {
      continue;
    }
    const uint64_t bytes = block_bytes(trace, event);
    const CellSpan span = starting_in(event.address, bytes);
    if (span.count == 0) {
      of_event_[i] = LocationTable::kNone;
    } else {
      blocks_.emplace_back(i, span);
      spend(1);
    }
  }
}

CellSpan CellTable::of_block(uint32_t event) const {
  const auto at = std::lower_bound(blocks_.begin(), blocks_.end(), event,
                                   [](const auto& entry, uint32_t e) { return entry.first < e; });
  return at->second;
}

CellSpan CellTable::starting_in(uint64_t address, uint64_t size) const {
  const auto first = std::lower_bound(starts_.begin(), starts_.end(), address);
  const auto last = std::lower_bound(first, starts_.end(), address + size);
  return {static_cast<uint32_t>(first - starts_.begin()), static_cast<uint32_t>(last - first)};
}

CellSpan CellTable::of_range(uint64_t address, uint64_t size) const {
  // The cell in which the range begins.
  auto first = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (first != starts_.begin()) {
    --first;
  }
  const auto last = std::lower_bound(first, starts_.end(), address + size);
  return {static_cast<uint32_t>(first - starts_.begin()), static_cast<uint32_t>(last - first)};
}

}  // namespace tsomon::predict
