// Windows of atomic sets, each judged on its stretch of the input.
//
// Cycles      Of accesses from the first to the last event of the windows' units. What is around
//             tells of their order; where the stretch ends less is known of it.
// Certainty   A stretch ends before all its accesses are over. A store behind it may be what a load
//             in it has read: a definite violation must be one without the values of such loads.
//             And an object may end so that one of the accesses was to another one: inside objects
//             a violation is no more than possible.
// Complexity  That of analyse_atomic_sets(), and O(events + labels + sets).
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "online/detector/detector.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon {

// Gives the stretch the labels, sets and allocations of these windows that it lacks.
Analysis analyse_set_windows(const Symbols& symbols, std::span<const DetectedWindow> windows,
                             const AnalysisOptions& options, Trace* stretch,
                             std::vector<uint64_t>* index);

}  // namespace tsomon
