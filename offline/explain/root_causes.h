// Which slices of code, had they been atomic, would have ruled an execution out.
//
// Source      B. Cirisci, C. Enea, A. Farzan, S. O. Mutluergil, "Root Causing Linearizability
//             Violations" (CAV 2020): trace eliminators, critical segments, theorem 4.
// Purpose     The minimal sets of segments of operations such that no execution with the same
//             program order and the same order of conflicting accesses runs each of them without
//             interruption.
// Method      What a set of segments adds to the order of the execution are ways back inside an
//             operation. So a set is a root cause if a walk by the order and by its segments comes
//             back to where it began, and left an operation on the way. Such walks are searched
//             for, the shortest segments first; one that leads no further than another one with
//             less is not gone on with (reachable.h says what the order alone leads to). In the
//             paper's terms: the cycles of theorem 4, but a thread may be visited as often as it
//             takes, which store buffers need.
// Complexity  Polynomial for a fixed number of threads: accesses times the walks that nothing
//             dominates, each O(length of the operations that are reached in part). Bounded by
//             max_sequences, and by the meter of the thread (tso/support/work.h).
// Misses      Where store buffers keep accesses of a thread apart and there are more than
//             Reachable::kMostPairs of them, what only `ordered` says is not used.
//             complete == false: there may be smaller sets than those that were found; each that
//             was found is a root cause all the same.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "offline/explain/segments.h"
#include "tso/order/event_graph.h"

namespace tsomon::explain {

struct RootCauseProblem {
  struct Access {
    uint32_t thread = 0;  // dense
    uint32_t operation = 0;
    uint32_t position = 0;  // in the program order of the thread, each once
    // Ordered before everything that follows in its thread / after all that precedes it. Both are
    // true without store buffers.
    bool before_later = true;
    bool after_earlier = true;
  };
  std::vector<Access> accesses;
  // Between accesses of different threads: which came first.
  std::vector<Edge> conflicts;
  // Whether program order orders two accesses of a thread, the first the earlier one. Asked only
  // where the flags above leave it open. Empty: never then.
  std::function<bool(uint32_t, uint32_t)> ordered;
};

struct RootCauseBounds {
  uint64_t max_sequences = 20'000'000;  // steps of walks
  size_t max_sets = 2'000;
};

struct RootCauses {
  std::vector<SegmentSet> minimal;
  uint64_t sequences = 0;
  bool complete = true;
};

RootCauses find_root_causes(const RootCauseProblem& problem, const RootCauseBounds& bounds = {});

}  // namespace tsomon::explain
