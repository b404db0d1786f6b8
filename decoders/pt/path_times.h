// When the entries of a path took place at the earliest and at the latest, by their own times and
// by those of the ones in front of them and behind them. Both ascend.
//
// Memory      16 bytes an entry. Complexity O(entries).
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "decoders/pt/flow.h"

namespace tsomon::pt {

class PathTimes {
 public:
  explicit PathTimes(const std::vector<PathEntry>& entries)
      : low_(entries.size()), high_(entries.size()) {
    int64_t low = kTimeMin;
    for (size_t i = 0; i < entries.size(); ++i) {
      low_[i] = low = std::max(low, entries[i].lo);
    }
    int64_t high = kTimeMax;
    for (size_t i = entries.size(); i-- != 0;) {
      high_[i] = high = std::min(high, entries[i].hi);
    }
  }

  int64_t low(size_t entry) const { return low_[entry]; }
  int64_t high(size_t entry) const { return high_[entry]; }
  // The first entry that may have taken place at the time or later.
  size_t first_at(int64_t time) const {
    return static_cast<size_t>(std::lower_bound(high_.begin(), high_.end(), time) - high_.begin());
  }

 private:
  std::vector<int64_t> low_;
  std::vector<int64_t> high_;
};

}  // namespace tsomon::pt
