// Parts of a trace that locking makes serializable, whatever the order of their units.
//
// Source      Two-phase locking: Eswaran, Gray, Lorie, Traiger, "The notions of consistency and
//             predicate locks in a database system", CACM 1976.
// Method      A unit that holds the locks around all its accesses to what others access at one and
//             the same time, its lock point, comes before another one with which it shares a lock
//             iff its lock point does: the other acquires the lock after its release has committed,
//             and with it all that is inside. So every execution has the order of the lock points.
// Purpose     Well-locked units whose order is not known, as without time stamps, have more orders
//             than a search can go through.
// Misses      Where a pair of accesses is inside of several common locks, one of them is chosen.
// Complexity  O(log n + locks held) for each edge.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <vector>

#include "tso/check/class_graph.h"
#include "tso/model/units.h"
#include "tso/order/lock_exclusion.h"

namespace tsomon {

// `edges` of the conflict graph of units: those on which the cycles of a component may lie. True: no
// execution has a cycle of them.
bool locked_in_two_phases(const Relation& relation, const UnitTable& units,
                          const LockExclusion& locks, const Reachability& order,
                          const ClassGraph& classes, const std::vector<uint32_t>& edges);

}  // namespace tsomon
