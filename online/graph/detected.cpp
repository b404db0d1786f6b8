#include "online/graph/detected.h"

#include <algorithm>

namespace tsomon {

std::vector<EventRange> ranges_of(const std::vector<DetectedUnit>& units,
                                  const std::vector<uint64_t>& index) {
  const auto place = [&](uint64_t event) {
    return static_cast<uint32_t>(std::lower_bound(index.begin(), index.end(), event) -
                                 index.begin());
  };
  std::vector<EventRange> ranges;
  ranges.reserve(units.size());
  for (const DetectedUnit& unit : units) {
    ranges.push_back({unit.thread, place(unit.first), place(unit.last)});
  }
  return ranges;
}

bool DetectedCycle::certain() const {
  return std::none_of(steps.begin(), steps.end(),
                      [](const DetectedStep& step) { return step.kind == EdgeKind::kOverlap; });
}

}  // namespace tsomon
