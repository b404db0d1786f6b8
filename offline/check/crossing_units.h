// Whether any execution that keeps the directed edges of a trace has a cycle of units, in time that
// is linear in the trace however many orders are open.
//
// Source      Theory sections 3 and 4: a cycle that some execution has enters and leaves units; one
//             of these passages, from an event b to an event a where b leaves a unit, or one that
//             an earlier unit of the thread leads to, and a enters that one, has no path of
//             directed edges from a to b, or the cycle would be one of events.
// Method      For each event b that may leave so, what the units of all threads can be reached from
//             it: of each thread the first such unit is enough, since what a unit of a thread
//             leads to, all later ones do. From an event to the next thread leads each conflict
//             that no path of directed edges contradicts; of the accesses of one thread to one
//             location the first that is not before it is the one to look at. The search is done
//             when it comes back to an a. Nothing is stored for pairs that are open.
// Threads     A unit of stores alone leads to no later unit of loads alone (the stores may commit
//             after these), but for units between that have both.
// kNo         is exact: the trace is serializable. Forwarding constraints (theory 5.1), values and locks that exclude
//             each other only take executions away. Values that have one source count as edges.
// kYes        A cycle with an execution that has it, which the witness checker has accepted: of the
//             events that it needs, where loads have no recorded values and no lock excludes, else
//             of the whole trace (offline/check/crossing_proof.h). Whether all executions have one
//             is decided there as well, in most cases.
// kUnknown    Cycles were met, and no execution that has one was found; or the work is used up.
// Complexity  O(n log n) for the edges and their order; then for each unit, each location of its
//             thread, and each event that leaves it and may be passed: O(threads * locations * log
//             n). Memory 16 bytes for an event and a thread, and some 60 for an event.
// Thread-safety: a pure function of its arguments. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <optional>

#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon {

struct CrossingUnits {
  Answer cyclic = Answer::kUnknown;
  std::optional<Violation> violation;  // of kYes
  uint64_t units = 0;
  uint64_t refused = 0;           // cycles that were met and no execution was found for
  const char* unknown = nullptr;  // of kUnknown: why none was looked for
};

// What an analysis says that has one finding of many.
inline constexpr const char* kOthersUnsought =
    "the first violation that was met is shown, others were not looked for";

// Serializability or robustness, under TSO.
CrossingUnits find_crossing_units(const Trace& trace, const AnalysisOptions& options);

// The same as an analysis of the whole trace, with the same bounds: complete where the answer is
// kNo, and with one finding where it is kYes. A trace that lacks events is not decided.
Result<Analysis> analyse_crossing_units(const Trace& trace, const AnalysisOptions& options);
// Of a trace that was indexed with options.relation.
Result<Analysis> analyse_crossing_units(const IndexedTrace& indexed,
                                        const AnalysisOptions& options);

// The exact analysis (offline/check/orientation_search.h), which reports all that it finds, and the
// one above: of long traces, the sooner the more pairs of accesses are open. The exact one gets all
// the work that it may have only if that decides nothing.
Result<Analysis> analyse_in_steps(const Trace& trace, const AnalysisOptions& options);

}  // namespace tsomon
