// Short cycles to show: of units for serializability, of events for robustness.
//
// Complexity  shortest_cycle() is O(classes * edges) up to kMaxCycleWork edge visits, after which
//             the shortest found so far is returned.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/model/relation.h"

namespace tsomon {

inline constexpr uint64_t kMaxCycleWork = 50'000'000;

// The shortest cycle of classes that the edges make; empty when there is none. `unit` of the result
// is the class that the edge leaves.
std::vector<CycleEdge> shortest_cycle(const std::vector<CycleEdge>& edges,
                                      const std::vector<uint32_t>& class_of);

// Whether an order of the two is one of a lock's own location: of different threads.
bool orders_lock(const Event& from, const Event& to);

// The same without edges between events of a lock, where there is such a cycle: what a lock orders
// says less than what it guards.
std::vector<CycleEdge> shortest_cycle_of_data(const Trace& trace,
                                              const std::vector<CycleEdge>& edges,
                                              const std::vector<uint32_t>& class_of);

// The same over all ordered pairs of `events` instead of given edges. `before` decides undirected
// edges; of one thread those pairs are ordered that `in_thread` orders, if it is there, or the
// trace. Quadratic: at most kMaxPairEvents events, else empty.
inline constexpr size_t kMaxPairEvents = 2000;
using ThreadOrder = std::function<bool(uint32_t, uint32_t)>;
std::vector<CycleEdge> shortest_cycle_among(const Relation& relation,
                                            const std::vector<uint32_t>& class_of,
                                            const std::vector<uint32_t>& events,
                                            const OrientationOracle& before,
                                            const ThreadOrder& in_thread = {});

// The cycle with fewer classes, where events on it have a certain order of their own: edges that
// follow from others are not given. At most kMaxCycleWork / 10 pairs are looked at.
std::vector<CycleEdge> shortened(const Relation& relation, const std::vector<uint32_t>& class_of,
                                 std::vector<CycleEdge> cycle);

}  // namespace tsomon
