// When the entries of a path took place at the earliest and at the latest, by their own times and
// by those of the ones before them and after them. Both ascend.
//
// Parts       An instruction that repeats or stores to several places may have been interrupted
//             half done: the path has it once, where it was come back to, or not at all, where the
//             path goes on elsewhere. It may be as old as what is before that.
// Memory      16 bytes an entry. Complexity O(entries).
// Thread-safety: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "decoders/pt/flow/flow.h"

namespace tsomon::pt {

// Whether a part of it may have been executed before the time that the trace has for it.
inline bool began_earlier(const PathEntry& entry) {
  if (entry.kind != PathEntry::Kind::kBlock) {
    return entry.kind == PathEntry::Kind::kElsewhere;
  }
  if (!entry.resumed) {
    return false;
  }
  const x86::Instruction& first = entry.block->instructions.front();
  return first.repeats() || first.unlisted_stores ||
         (first.access_count != 0 && first.accesses[first.access_count - 1U].opaque);
}

class PathTimes {
 public:
  explicit PathTimes(const std::vector<PathEntry>& entries)
      : low_(entries.size()), high_(entries.size()) {
    int64_t low = kTimeMin;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (!began_earlier(entries[i])) {
        low = std::max(low, entries[i].lo);
      }
      low_[i] = low;
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
