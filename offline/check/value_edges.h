// Directed edges that recorded values add, one load at a time.
//
// Source      Theory section 5.3.
// Purpose     What is cheap of what tso/order/values.h finds: a load whose value one store alone
//             has written comes behind that store, and before the next store of that thread to
//             the location; one that has read the initial value before all stores of other
//             threads.
// Misses      Values that several stores wrote, and loads that may have been forwarded.
// Complexity  O(n log n). Thread-safety: a pure function of its arguments.
#pragma once

#include <vector>

#include "tso/model/relation.h"
#include "tso/order/event_graph.h"

namespace tsomon {

// False: no load has a value that says something.
bool add_value_edges(const Relation& relation, const AccessIndex& accesses,
                     std::vector<Edge>* edges);

}  // namespace tsomon
