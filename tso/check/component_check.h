// A check of one component of the mixed conflict graph that knows the whole trace.
//
// Purpose     A search over orientations (tso/order/orientations.h) is handed a component with the
//             orders of all pairs of its events. Components with a structure can be decided without:
//             such a check is asked first, and what it leaves open goes to the search.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/event_graph.h"
#include "tso/order/fences.h"
#include "tso/order/orientations.h"
#include "tso/order/refinement.h"

namespace tsomon {

struct ComponentQuestion {
  const Relation& relation;
  const UnitTable& units;
  const Fences& fences;
  const RefinedGraph& graph;
  const std::vector<UnitId>& members;  // the units of the component
  const std::vector<Edge>& open;       // pairs of their events whose order is open
  const std::vector<Edge>& directed;   // the other edges of the component, between units
  // Whether a complete orientation (true: from -> to) that some execution has gives the loads of
  // the component their recorded values. Empty: no values are known.
  std::function<bool(const std::vector<bool>&)> accept;
};

// Answers as a search gives them. An orientation in the result is that of an execution with the
// recorded values.
using ComponentCheck =
    std::function<OrientationResult(const ComponentQuestion&, const OrientationBounds&)>;

}  // namespace tsomon
