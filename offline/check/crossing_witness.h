// From a cycle of units, given by its edges between threads, to what a report shows of it.
//
// Purpose     Refuses cycles whose open edges contradict each other or the directed ones, and takes
//             out of an execution of the whole trace the few events that the cycle needs, for the
//             witness checker to look at. Edges that do not contradict each other need not fit into
//             an execution: what is known of issues says more than the order of events.
// Complexity  O(edges^3); O(n + slice^2), and the witness checker's O(n).
// Thread-safety: pure functions of their arguments.
#pragma once

#include <optional>
#include <vector>

#include "offline/check/issue_edges.h"
#include "tso/check/analysis.h"
#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/execution.h"
#include "tso/order/reachability.h"

namespace tsomon {

struct OrderedUnits {
  const Trace& trace;
  const AnalysisOptions& options;
  const UnitTable& units;
  const Relation& relation;
  const Reachability& order;  // of the directed edges
  const EffectNeighbours& neighbours;
  bool by_event = false;  // units are single events, and program order is whole
};

// `cycle`: edges from thread to thread; the event that one leads to is in the unit that the next
// one leaves, or its unit leads to that one.
bool may_fit_together(const OrderedUnits& in, const std::vector<Edge>& cycle);

// From an execution of all events that has the cycle. Nothing: the checker does not accept it.
std::optional<Violation> witness_in_execution(const OrderedUnits& in,
                                              const std::vector<Edge>& cycle,
                                              const std::vector<Step>& execution);

}  // namespace tsomon
