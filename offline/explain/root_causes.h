// Which stretches of code, had they been atomic, would have ruled an execution out.
//
// Source      B. Cirisci, C. Enea, A. Farzan, S. O. Mutluergil, "Root Causing Linearizability
//             Violations" (CAV 2020): trace eliminators, critical segments, theorem 4.
// Purpose     The minimal sets of segments of operations such that no execution with the same
//             program order and the same order of conflicting accesses runs each of them without
//             interruption.
// Method      Cycles through conflicts that visit every thread at most once (twice, where a store
// buffer
//             makes two chains of a thread). Where a cycle leaves
//             a thread before it came in (or after, where a store buffer keeps the two unordered),
//             only the atomicity of one operation closes it: that stretch is a segment. Of the
//             conflicts of one access with a thread those are left out that another one makes
//             superfluous.
// Complexity  O(accesses^k) sequences for cycles of k threads at worst. Bounded by max_sequences,
//             by the cycles' length, and by the meter of the thread (tso/support/work.h).
// Misses      With store buffers, sets in which a cycle needs two segments of one thread between
//             coming in and leaving (1 of 3,000 random executions in the tests).
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
  uint64_t max_sequences = 20'000'000;  // of conflicts that are looked at
  uint32_t max_visits = 8;              // of threads, on one cycle
  size_t max_sets = 2'000;
};

struct RootCauses {
  std::vector<SegmentSet> minimal;
  uint64_t sequences = 0;
  bool complete = true;
};

RootCauses find_root_causes(const RootCauseProblem& problem, const RootCauseBounds& bounds = {});

}  // namespace tsomon::explain
