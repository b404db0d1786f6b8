// What is known of the order of units beyond the edges that the detector finds event by event.
//
// Source      Theory sections 5.1 and 5.3, by way of tso/order/refinement.h.
// Purpose     Most pairs of accesses that wait in buffers at the same time are left undirected by
//             the clock, but a value that is read later gives many of them. Units whose order is
//             known so need not be kept because of what might have come the other way round.
// Soundness   Holds for every execution of the whole input that has the recorded values, not only
//             for those of the slice: see EventHistory. Nothing is known of a slice that lacks
//             a store, whose values fit no execution, or with too many undirected edges.
// Complexity  refine() of the slice, and O((events + units) log units).
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "online/graph/detected.h"
#include "online/stream/history.h"
#include "tso/order/mixed_graph.h"

namespace tsomon {

// A unit, or one of those that were merged into it: all of one place count as one.
struct PlacedUnit {
  DetectedUnit unit;
  uint32_t place = 0;
};

struct ValueOrder {
  // Between units by their places: each order that some execution may have is that of
  // a path. Directed ones once, undirected ones for every pair of events.
  std::vector<MixedEdge> edges;
  // Those of `edges` that are not directed by the clock, the smaller place first; likewise for
  // every pair of events.
  std::vector<std::pair<uint32_t, uint32_t>> beyond_clock;
};

// `units`: all that they have done lies in the slice; those of one thread do not overlap. `lock_words`:
// of the slice (EventHistory::lock_words).
std::optional<ValueOrder> value_order(EventHistory::Slice&& slice, std::vector<LockWord> lock_words,
                                      std::vector<PlacedUnit> units,
                                      const RelationOptions& relation, uint64_t max_undirected);

}  // namespace tsomon
