// Windows of atomic sets, each judged on its stretch of the input.
//
// Complexity  That of analyse_atomic_sets(), and O(labels + sets).
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "online/detector.h"
#include "tso/analysis.h"
#include "tso/trace.h"

namespace tsomon {

// Gives the stretch the labels and sets that it lacks. Objects of the windows are there from its
// beginning: an event in front, which gets index 0.
Analysis analyse_set_windows(const Symbols& symbols, std::span<const DetectedWindow> windows,
                             const AnalysisOptions& options, Trace* stretch,
                             std::vector<uint64_t>* index);

}  // namespace tsomon
