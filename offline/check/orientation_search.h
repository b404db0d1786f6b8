// Whether a component of a trace has a bad valid orientation, and a good one: an exact search that looks
// for the cycle instead of trying all orientations.
//
// Source      Theory sections 3 to 5.1: a violation is a set S of oriented open edges with a cycle
//             of units made of S and directed edges, such that some execution has S. S can be as
//             small as the cycle.
// Bad         Cycles are searched with one open edge, then two, and so on. Between open edges a
//             cycle follows directed paths of units, which are closed beforehand. Every open edge
//             taken is added to the order of the steps (offline/check/execution_model.h) with all
//             that follows, so that an impossible cycle is left at its first impossible edge. A
//             cycle with fewer open edges has been refuted before, so one that could be cut short
//             is not followed; nor one that cannot be closed with the open edges left. What is
//             found is completed to an orientation of all open edges and has to be accepted.
// Good        offline/check/serial_search.h.
// Exact       within the bound, beyond it Answer::kUnknown. The same answers as
//             enumerate_orientations(), which the tests hold it to.
// Bounds      OrientationBounds::max_steps bounds the decisions, of which each edge or
//             set of units that is tried counts as a part (offline/check/search_bounds.h);
//             max_events and max_bytes the memory: n*n bytes for n events with open edges, all
//             orders together; max_work what the orders cost, kWorkFactor times as many words.
//             Larger components: offline/check/short_cycle.h.
// Complexity  Polynomial for a bounded number of open edges on the cycle; exponential in it.
// Thread-safety: a pure function of its arguments.
#pragma once

#include "tso/check/analysis.h"
#include "tso/order/orientations.h"

namespace tsomon {

OrientationResult search_orientations(const OrientationProblem& problem,
                                      const OrientationBounds& bounds);

// analyse() with this search, and with offline/check/fenced_check.h where that applies: what judges
// slices and traces outside of tests.
Result<Analysis> analyse_exactly(const Trace& trace, const AnalysisOptions& options);
Result<Analysis> analyse_exactly(const IndexedTrace& indexed, const AnalysisOptions& options);

}  // namespace tsomon
