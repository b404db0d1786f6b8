// When a policy looks at all its locations for what units that are gone have left there.
//
// Purpose     What is left is recognised when a location is used next; those that are not used
//             again have to be looked for. That is done when their number has doubled, so that it
//             costs a share of finding them, and when nodes of the graph have changed their meaning
//             for all locations: units were merged, or generations may wrap around.
// Complexity  O(1).
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tsomon {

class PruneSchedule {
 public:
  static constexpr size_t kFewLocations = 1024;  // not worth looking for unused ones

  // There are enough to make up for the work, that of a sweep of the graph included.
  bool many(size_t locations) const { return locations >= many_; }
  // At every sweep: whether they are to be looked at now.
  bool due(size_t locations, bool merged) {
    return ++sweeps_ >= kMaxSweeps || merged || many(locations);
  }
  void done(size_t locations, size_t units) {
    sweeps_ = 0;
    many_ = locations + std::max({locations, units, kFewLocations});
  }

 private:
  static constexpr uint32_t kMaxSweeps = 1U << 15;  // generations wrap around later

  size_t many_ = kFewLocations;
  uint32_t sweeps_ = 0;  // since then
};

}  // namespace tsomon
