// What a whole analysis may cost, and how one ends before its time.
//
// Purpose     AnalysisOptions bounds searches. Everything else, from the relation to the witnesses,
//             is bounded here, in work and in memory that grow with the events. An analysis that
//             reaches this, or is asked to stop (tso/support/work.h), keeps the components that it has
//             judged, is incomplete, and says why in its notes.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <functional>

#include "tso/check/analysis.h"
#include "tso/support/work.h"

namespace tsomon {

// Of a trace, or of a slice: tens of seconds for the first 100,000 events without a fence, where
// everything is in an open order with everything. An outer scope may leave less.
inline constexpr WorkBudget kAnalysisBudget = {
    .work_at_first = 2'000'000'000,
    .work_per_event = 10'000,
    .bytes_at_first = uint64_t{1} << 29,
    .bytes_per_event = 32 << 10,
};

// Of what finds slices whose cycles may close in any order of what is open, before it looks at one
// execution alone (online/detector/bounded_detector.h).
inline constexpr WorkBudget kMixedBudget = {.work_at_first = 2'000'000, .work_per_event = 60};
// The same while a program runs: nothing looks at the whole of it afterwards.
inline constexpr WorkBudget kMixedLiveBudget = {.work_at_first = 2'000'000, .work_per_event = 480};

// Of the analysis of a whole input that the detector could not follow, before the same.
inline constexpr WorkBudget kWholeBudget = {.work_at_first = 1'000'000'000, .work_per_event = 200};

// Of that analysis where it is known that there is something to find, and each kind is wanted.
inline constexpr WorkBudget kAllViolationsBudget = {.work_at_first = 50'000'000,
                                                    .work_per_event = 500};

// Of the analyses of all slices, before the same.
inline constexpr WorkBudget kCandidatesBudget = {.work_at_first = 500'000'000,
                                                 .work_per_event = 200};

// Of what finds the slices, over all events so far: the edges of fence-free units are quadratic.
inline constexpr WorkBudget kDetectionBudget = {.work_at_first = 500'000'000,
                                                .work_per_event = 10'000};

// Calls `analysis` with an empty result, to which it adds what it has judged. The verdict follows
// from what is there in the end.
Result<Analysis> analysed_within(const WorkBudget& budget, const Trace& trace,
                                 const std::function<Result<void>(Analysis*)>& analysis);

// It ended before its time.
bool ended_early(const Analysis& analysis);

}  // namespace tsomon
