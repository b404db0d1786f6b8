// Cycles of units: of one execution, and those that all executions have.
//
// Source      Theory section 3.
// Complexity  O(n * (threads + log n)) for the edges and their components, then a search for a
//             short cycle from a few of the units.
// Thread-safety: pure functions of their arguments. Throws WorkEnded.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "offline/check/thread_lists.h"

namespace tsomon {

// Edges of events, each leads to the unit that the next one leaves, and the last to the unit of
// the first; a short cycle if there is any. Nothing: the execution, of all events, has none.
std::optional<std::vector<Edge>> cycle_of_execution(const OrderedUnits& in,
                                                    const std::vector<Step>& execution);

// The same of edges that every execution has, and of `more`; without a cycle a place for each unit, or event
// (OrderedUnits::by_event), in an order that keeps them, close to that of their ends.
struct CertainUnits {
  std::optional<std::vector<Edge>> cycle;
  std::vector<uint32_t> place;
};
CertainUnits certain_units(const OrderedUnits& in, const AccessIndex& accesses,
                           const ThreadLists& lists, std::span<const Edge> more = {});

}  // namespace tsomon
