// Which accesses of a trace are on the same location.
//
// Purpose     Gives every distinct byte range of a trace a dense id and lists, for each id, the ids
//             whose ranges overlap with it (itself included): the exact overlap test of event.h,
//             done once per range instead of once per pair of events.
// Complexity  O(n) expected to number the ranges, O(r log r + o) for the overlaps of r ranges with
//             o overlapping pairs; o is quadratic only where large ranges nest (one memset over
//             an array whose elements are accessed one by one costs one entry per element).
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

using LocationId = uint32_t;

class LocationTable {
 public:
  static constexpr LocationId kNone = 0xFFFFFFFFU;

  explicit LocationTable(const Trace& trace);

  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  LocationId of_event(size_t event) const { return of_event_[event]; }  // kNone: not an access
  const LocationKey& key(LocationId id) const { return keys_[id]; }
  const std::vector<LocationId>& overlapping(LocationId id) const { return overlaps_[id]; }

 private:
  void find_overlaps();

  std::vector<LocationKey> keys_;
  std::vector<LocationId> of_event_;
  std::vector<std::vector<LocationId>> overlaps_;
};

// Named locations (size 0) overlap only with themselves.
inline bool overlap(const LocationKey& a, const LocationKey& b) {
  if (a.size == 0 || b.size == 0) {
    return a == b;
  }
  return a.address < b.address ? b.address - a.address < a.size : a.address - b.address < b.size;
}

// Every byte of `inner` is a byte of `outer`.
inline bool contains(const LocationKey& outer, const LocationKey& inner) {
  if (outer.size == 0 || inner.size == 0) {
    return outer == inner;
  }
  return inner.address >= outer.address && inner.address - outer.address <= outer.size &&
         outer.size - (inner.address - outer.address) >= inner.size;
}

}  // namespace tsomon
