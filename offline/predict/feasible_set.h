// Which events a reordering that ends in a given state has to contain.
//
// Purpose     A reordering is made of the first nodes of each thread: `counts` says how many. The
//             smallest set before nodes that meet, each next in its thread, is closed under
//             what they need; what sections need depends on how locks may be reordered:
//   kKept     Sections of a lock keep their order, so all but the last one are complete. Then the
//             trace restricted to the set is the reordering: a sync-preserving one (Mathur,
//             Pavlogiannis, Viswanathan, POPL 2021).
//   kOpen     Sections of the threads that meet may be entered after any other: these are
//             completed only if the lock would be held twice or their order would change.
//   kClosed   All sections of other threads are completed, if they ever are (Cai et al., ESEC/FSE
//             2021, algorithm 1).
//             A semaphore that would be taken more often than it is posted is posted by whoever
//             does so first in the trace and can; for kKept at every point of the trace's order.
// Complexity  O(threads x (1 + sections that have to be completed)) and the sections looked up.
// Thread-safety: a pure function.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "offline/predict/model.h"

namespace tsomon::predict {

enum class Sections : uint8_t { kKept, kOpen, kClosed };

// How many nodes of each thread come before the nodes that meet, which are of different threads;
// nothing: there is no such set. It contains `included`, which are of other threads.
std::optional<std::vector<uint32_t>> set_before(const Model& model, std::span<const NodeId> meeting,
                                                Sections sections,
                                                std::span<const NodeId> included = {});

}  // namespace tsomon::predict
