// Segments: slices of the accesses of one operation, and sets of them.
//
// Purpose     What a root cause is made of: if each segment of the set ran without interruption,
//             the execution could not have happened.
// Order       A set is below another if each of its segments lies inside one of the other: then it
//             asks for less. The minimal ones are the answers.
// Complexity  below() O(sizes of both); sets have a few members. Thread-safety: plain data.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tsomon::explain {

// First and last are positions in the program order of the operation's thread; of blocks of code
// (code_blocks.h) they are lines, and `operation` is the function.
struct Segment {
  uint32_t operation = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): its version 14 takes this for a literal
  auto operator<=>(const Segment&) const = default;

  bool contains(const Segment& inner) const {
    return operation == inner.operation && first <= inner.first && inner.last <= last;
  }
};

using SegmentSet = std::vector<Segment>;  // sorted; none contains another

// Every segment of `lower` lies inside one of `upper`.
bool below(const SegmentSet& lower, const SegmentSet& upper);

// The least set that contains all of them: those that share a place become one.
SegmentSet merged(const SegmentSet& a, const SegmentSet& b);

// The minimal sets of those that were added, in the order in which they came.
class MinimalSets {
 public:
  // False: another one is below it (or equal).
  bool add(const SegmentSet& set);
  // A set that was added is below this one.
  bool covers(const SegmentSet& set) const;
  const std::vector<SegmentSet>& sets() const { return sets_; }

 private:
  std::vector<SegmentSet> sets_;
};

// For each list one of its sets, merged: the minimal results. At most `max_sets` are kept on the
// way; *complete becomes false where that left any out.
std::vector<SegmentSet> common_repairs(const std::vector<std::vector<SegmentSet>>& lists,
                                       size_t max_sets, bool* complete);

}  // namespace tsomon::explain
