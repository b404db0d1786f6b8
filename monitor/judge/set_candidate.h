// Candidates of atomic sets, each judged on its slice of the input.
//
// Cycles      Of accesses from the first to the last event of the candidates' units. What is around
//             tells of their order; where the slice ends less is known of it.
// Certainty   A slice ends before all its accesses are over. A store behind it may be what a load
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

// Gives the slice the labels, sets and allocations of these candidates that it lacks.
Analysis analyse_set_candidates(const Symbols& symbols,
                                std::span<const DetectedCandidate> candidates,
                                const AnalysisOptions& options, Trace* slice,
                                std::vector<uint64_t>* index);

}  // namespace tsomon
