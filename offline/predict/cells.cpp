#include "offline/predict/cells.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon::predict {

// Each start and each end of a range begins a cell. One that no range covers is never used.
CellTable::CellTable(const Trace& trace) : locations_(trace) {
  spans_.resize(locations_.size());
  for (LocationId id = 0; id < locations_.size(); ++id) {
    const LocationKey& key = locations_.key(id);
    if (key.size > 0) {
      starts_.push_back(key.address);
      starts_.push_back(key.address + key.size);
    }
  }
  spend(starts_.size());
  std::sort(starts_.begin(), starts_.end());
  starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  size_ = static_cast<uint32_t>(starts_.size());
  for (LocationId id = 0; id < locations_.size(); ++id) {
    const LocationKey& key = locations_.key(id);
    if (key.size > 0) {
      spans_[id] = of_range(key.address, key.size);
    } else {
      spans_[id] = {size_++, 1};
      names_.push_back(key.address);
    }
  }
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
