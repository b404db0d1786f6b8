// From a cycle of units, given by its edges between threads, to an execution that shows it.
//
// Purpose     Decides whether open edges fit together, and with all directed ones, then looks
//             for an execution of the few events that the cycle needs and has the witness
//             checker look at it. The order of these events is one of all events of the trace,
//             so what lies between them is respected. A load that may be forwarded is taken to
//             come before the later loads of its thread: that is one of the possible
//             executions.
// Complexity  O(edges^3 + window^2), and the witness checker's O(n).
// Thread-safety: a pure function of its arguments.
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
// one leaves, or its unit leads to that one. Nothing: no execution was found.
std::optional<Violation> witness_of_cycle(const OrderedUnits& in, const std::vector<Edge>& cycle);

// The same from an execution of the whole trace that has the cycle. O(n).
std::optional<Violation> witness_in_execution(const OrderedUnits& in,
                                              const std::vector<Edge>& cycle,
                                              const std::vector<Step>& execution);

}  // namespace tsomon
