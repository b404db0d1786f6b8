#include "tso/model/set_bytes.h"

#include <algorithm>

namespace tsomon {
namespace {

uint64_t last_of(const LocationKey& range) {
  const uint64_t last = range.address + (range.size - 1);
  return last < range.address ? UINT64_MAX : last;
}

}  // namespace

SetBytes::SetBytes(const std::vector<LocationKey>& members) {
  std::vector<Range> ranges;
  for (const LocationKey& member : members) {
    if (member.size == 0) {
      names_.push_back(member.address);
    } else {
      ranges.push_back({member.address, last_of(member)});
    }
  }
  std::sort(names_.begin(), names_.end());
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  for (const Range& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

bool SetBytes::meets_bytes(uint64_t first, uint64_t last) const {
  const auto at = std::partition_point(ranges_.begin(), ranges_.end(),
                                       [&](const Range& range) { return range.last < first; });
  return at != ranges_.end() && at->first <= last;
}

bool SetBytes::meets(const LocationKey& range) const {
  return range.size == 0 ? std::binary_search(names_.begin(), names_.end(), range.address)
                         : meets_bytes(range.address, last_of(range));
}

bool SetBytes::meets_both(const LocationKey& a, const LocationKey& b) const {
  if (a.size == 0 || b.size == 0) {
    return a == b && meets(a);
  }
  const uint64_t first = std::max(a.address, b.address);
  const uint64_t last = std::min(last_of(a), last_of(b));
  return first <= last && meets_bytes(first, last);
}

}  // namespace tsomon
