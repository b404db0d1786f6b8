// Fast verdicts on containers and set entries whose values are distinct.
//
// Purpose     Long histories: O(n log n) where the search may be exponential.
// Applies     To queues, stacks and priority queues without peeks, every value pushed at most once,
//             and to a key of a set that is inserted and removed at most once. Elsewhere, and where
//             pending pops leave the answer open, there is none, and the search is asked.
// Source      Bouajjani, Emmi, Enea, Hamza (ICALP 2015) and Henzinger, Sezgin, Vafeiadis (CONCUR
//             2013): the ways in which a queue of distinct values can go wrong; Abdulla et al.
//             (PLDI 2025) and Lee et al. (OOPSLA 2025): decrease and conquer. Each .cpp says why it
//             is sound and complete.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/linearizability/distinct.h"
#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

struct Monitored {
  bool linearizable = true;
  // Of a violation: operations, all of each value, that are a violation by themselves.
  std::vector<uint32_t> suspects;
  // Otherwise, of queues and stacks if asked for: a linearization, as indices of Part::ops.
  std::vector<uint32_t> order;
};

// Nothing: no monitor applies.
std::optional<Monitored> monitor(const Part& part, bool want_order = false);

// Of values that are each pushed once and popped at most once, the pop not wholly before the push.
Monitored monitor_queue(const Distinct& values);  // O(n)
Monitored monitor_stack(
    const Distinct& values);  // with its order;         // O(n log n) for a bounded concurrency
Monitored monitor_priority_queue(const Distinct& values);  // O(n log n)
// Of a history that monitor_queue() allows; O(n log n).
std::vector<uint32_t> queue_order(const Distinct& values);
std::optional<Monitored> monitor_set_entry(const Part& part);  // O(n)

}  // namespace tsomon::linearizability
