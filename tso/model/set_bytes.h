// The bytes and names of an atomic set, or of an object.
//
// Purpose     Accesses conflict in a set by what they have in common inside of it: of one that
//             reaches over the border of the set only the part inside counts (theory section 7).
// Complexity  O(log members) a question.
// Thread-safety: immutable once built.
#pragma once

#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

class SetBytes {
 public:
  SetBytes() = default;
  explicit SetBytes(const std::vector<LocationKey>& members);

  bool meets(const LocationKey& range) const;
  // Some byte, or the name, is in both and in the set.
  bool meets_both(const LocationKey& a, const LocationKey& b) const;

 private:
  struct Range {
    uint64_t first = 0;
    uint64_t last = 0;  // the last byte
  };
  bool meets_bytes(uint64_t first, uint64_t last) const;

  std::vector<Range> ranges_;    // disjoint, increasing
  std::vector<uint64_t> names_;  // increasing
};

}  // namespace tsomon
