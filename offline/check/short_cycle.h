// A cycle of units with one open edge, in components that are too large for a search.
//
// Purpose     Says `possible` about components whose orders do not fit into memory or time, where a
//             violation is plain: some open edge, taken one way, closes a cycle of directed edges,
//             and neither the directed edges nor the rules (forwarding constraints and values, theory sections 5.1
//             and 5.3) forbid it.
// Complexity  O((classes + edges) * classes / 64) in the classes with open edges, in memory linear
//             in the classes; for each candidate a pass over the rules.
// Misses      Cycles with two or more open edges.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tso/order/orientations.h"

namespace tsomon {

// The open edge as it has to be taken; nothing: there is none, or the work exceeded max_work. Needs
// OrientationProblem::before. Adds to `work` what it cost.
std::optional<Edge> find_short_cycle(const OrientationProblem& problem, uint64_t max_work,
                                     uint64_t* work);

}  // namespace tsomon
