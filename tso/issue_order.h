// In which order accesses were issued, beyond what the intervals of the trace show.
//
// Source      Theory section 5.3, for questions about the order of the issues (SC-serializability,
//             atomic sets).
// Purpose     Recorded values show the order of effects. Of that, what comes before the effect of a
//             load from memory or of a locked operation was also issued before it.
// Soundness   Every edge holds in all TSO executions with the recorded values.
// Complexity  That of refine() for TSO.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/event_graph.h"

namespace tsomon {

// Directions of undirected edges of `issues`, a relation of MemoryModel::kSc. Empty when the values
// contradict themselves.
std::vector<Edge> issue_order_from_values(const Relation& issues, const AccessIndex& accesses,
                                          uint64_t max_undirected);

// Whether the trace has values that can be relied on.
bool has_values(const Trace& trace);

}  // namespace tsomon
