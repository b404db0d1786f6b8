// An order of all units of a trace that some execution without a cycle is likely to follow.
//
// Source      Theory 5.1: where a load may be forwarded from a store of its thread, and was issued
//             before a store of another thread, no order has that store between the two.
// Method      The units of the first thread in program order, then those of the next one. Before a
//             unit come those that certainly do; and where it stores to what a load of another
//             thread was issued before, whose own store is in the order already, the unit of that
//             load. So the other threads lag behind, with loads whose own stores are still in the
//             buffer. What such a load's unit in turn has to wait for may lead back: then the unit
//             comes without it, and the execution that follows the order is likely to have a cycle.
// Misses      Nothing is taken back, so an order may be missed.
// Complexity  O(n * threads), as much again for what comes in front and is given up.
// Thread-safety: a pure function of its arguments. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "tso/order/event_graph.h"
#include "tso/order/reachability.h"

namespace tsomon {

// `before`: for each node (a unit, or an event: OrderedUnits::by_event) those that come before it.
// Empty: these edges have a cycle, or too much was given up.
std::vector<uint32_t> units_by_thread(const OrderedUnits& in, const AccessIndex& accesses,
                                      const Adjacency& before);

}  // namespace tsomon
