// Cycles of a component beside the one that is shown of it.
//
// Purpose     A component of many units is violated in many ways, of which each kind is to be told. Each pair of
//             units that comes before and after each other is a violation by itself; beside these, of each kind
//             of conflict that lies on a cycle a short one.
// Complexity  O(edges) and, of each kind of conflict, a search that visits at most kMostVisited edges.
// Misses      Kinds of cycles all of whose conflicts lie on others, too, and what the last bound leaves out.
// Thread-safety: a pure function of its arguments. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tso/model/finding.h"

namespace tsomon {

// Positions in `edges`, which lead from class to class, in the order of each cycle. `kind`: equal for conflicts that
// are not to be told apart. Pairs come first.
std::vector<std::vector<uint32_t>> further_cycles(
    const std::vector<CycleEdge>& edges, const std::vector<uint32_t>& class_of,
    const std::function<uint64_t(const CycleEdge&)>& kind);

}  // namespace tsomon
