// An execution of a component without a cycle of units.
//
// Source      Theory sections 3 and 5.1: an orientation without a cycle of units is an order of the
//             units that the directed edges allow, and that the rules (forwarding constraints and values) allow:
//             events inside a unit are of one thread and need no decision.
// Method      What the rules imply for the units is drawn to a fixed point: a contradiction is the
//             answer of most components that have no such order. Else the units are put into order by
//             priority, and only rules that this breaks are decided (offline/check/rule_search.h);
//             if that leads nowhere, one by one (offline/check/unit_order.h). If no execution has
//             the order of the units, an orientation is searched for which units and steps order
//             each other until neither says more (offline/check/completion.h), and what is open
//             then is tried.
// Exact       within the bounds, beyond them Answer::kUnknown.
// Complexity  O(units^2 * (units + rules) / 64) for the fixed point; what comes after it is bounded
//             by the caller.
// Thread-safety: none; the model is left as it was found.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/check/execution_model.h"
#include "tso/order/orientations.h"

namespace tsomon {

// `units`: the order of the units with open edges; `class_of`: the element of it for each event.
// kYes fills `found` with an orientation that is accepted. Adds to `steps`, and to `words` what was
// looked at in the order of the units.
Answer find_serial(const OrientationProblem& problem, const PartialOrder& units,
                   const std::vector<uint32_t>& class_of, ExecutionModel* model,
                   const OrientationBounds& bounds, uint64_t* steps, uint64_t* words,
                   std::vector<bool>* found);

}  // namespace tsomon
