// Accesses of one thread to one cell that are alike in all that rules out a meeting at once, so
// that whole groups are ruled out together and no work is done for each pair of accesses.
//
// Complexity  O(accesses of the cell x log groups).
// Errors      Throws WorkEnded.
// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "offline/predict/model.h"
#include "tso/support/work.h"

namespace tsomon::predict {

LockSet lock_set(const Model& model, std::span<const uint32_t> sections);
// Some lock keeps the holders of the two sets apart.
bool exclude(const LockSet& a, const LockSet& b);

struct AccessGroup {
  uint32_t thread = 0;
  bool writes = false;
  bool atomic = false;        // all of them
  uint32_t location = 0;      // of the accesses, in the source
  uint32_t first_cell = 0;    // of the accesses, which may have several
  uint32_t set = 0;           // of the locks that are held: Model::lock_sets()
  std::vector<NodeId> nodes;  // in program order
};

// The first index from `begin` on for which it is not so; it is so up to there. O(log(steps)).
template <typename Is>
size_t skip_while(const std::vector<NodeId>& nodes, size_t begin, const Is& is) {
  size_t step = 1;
  size_t end = begin;
  while (end < nodes.size() && is(nodes[end])) {
    begin = end + 1;
    end += step;
    step *= 2;
    spend(2);
  }
  const auto first = nodes.begin() + static_cast<ptrdiff_t>(begin);
  const auto last = nodes.begin() + static_cast<ptrdiff_t>(std::min(end, nodes.size()));
  return static_cast<size_t>(std::partition_point(first, last, is) - nodes.begin());
}

// One set of locks is held at all accesses of the cell, and keeps them apart.
bool all_exclude(const Model& model, uint32_t cell);
std::vector<AccessGroup> groups_of(const Model& model, uint32_t cell);

}  // namespace tsomon::predict
