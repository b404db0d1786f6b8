// In which order accesses were issued, beyond what the intervals of the trace show.
//
// Source      Theory section 5.3, for questions about the order of the issues (SC-serializability,
//             atomic sets).
// Purpose     Recorded values show the order of effects. What comes before the effect of a
//             load from memory or of a locked operation was also issued before it. A load that
//             has not returned what its thread stored last was from memory.
// Soundness   Every edge holds in all TSO executions with the recorded values.
// Complexity  That of refine() for TSO.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tso/order/event_graph.h"
#include "tso/order/execution.h"
#include "tso/order/values.h"

namespace tsomon {

// Directions of undirected edges of `issues`, a relation of MemoryModel::kSc. Nothing when the
// values contradict themselves.
std::optional<std::vector<Edge>> issue_order_from_values(const Relation& issues,
                                                         const AccessIndex& accesses,
                                                         uint64_t max_undirected);

// The load was certainly not forwarded from a store of its thread. `effects`: of MemoryModel::kTso.
bool reads_memory(const Relation& effects, uint32_t load, bool values);

// A load, and the stores of which it must have read one, by its value.
struct LoadSources {
  uint32_t load = 0;
  std::vector<uint32_t> stores;  // of other threads, or of any if there is an overwriting operation
  // Only if this locked operation came before the load, itself locked: it wrote another value.
  uint32_t overwritten_by = Relation::kNever;
};
// Of those of the loads that can have read nothing else, and of pairs of locked operations whose
// order is open. `values`: of the relation `issues`; `order`: of its event graph.
std::vector<LoadSources> foreign_sources(const Relation& issues, const AccessIndex& accesses,
                                         const RecordedValues& values, const Reachability& order,
                                         const std::vector<uint32_t>& loads);
// Whether each was issued after one of them, as far as `before` says.
bool sources_come_first(const Relation& issues, const std::vector<LoadSources>& loads,
                        const OrientationOracle& before);

// Whether the trace has values that can be relied on.
bool has_values(const Trace& trace);

}  // namespace tsomon
