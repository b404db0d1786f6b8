// Orders between threads that every schedule of the same run keeps, whatever it reads.
//
// Purpose     Part of the definition of a reordering, so the searches and the validator share it.
//   fork      before the next event of the started thread.
//   join      after what the joined thread did before it in the trace.
//   lock      A release without an acquisition: the thread held the lock when the trace began. It
//             comes before every later acquisition by others, of a reader before those of writers.
//   message   What came before a send comes before what follows a later receive of the same.
//             So does an atomic load of the address of one: of a word that tells what has
//             been sent, as the guard of a local static does.
//   semaphore What its count alone puts before a take: so many posts of a thread that it cannot do
//             without (semaphores.h). A new count comes between what comes before it and after.
//             All that comes before a take where posts are missing.
//   block     The beginning of a block of memory comes before what other threads do there, and
//             after what was done at the place before (block_names.h leaves little of that). Its end
//             comes before the beginning of the next block in the same memory *if both happen*:
//             the allocator orders the two, and nothing else by them.
//   destroy   Operations of a lock, a condition variable or a semaphore come before its end, and
//             before that of the block it lies in, *if both happen*.
//   carried   What was carried to a window (window_start.h) comes before everything else, in its
//             order.
// Complexity  O(n) for threads and locks; a receive costs the threads that have sent; a block costs its cells, and log(blocks).
// Misses      Notifications of condition variables are not in traces. A wait may end without one.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/cells.h"
#include "tso/model/trace.h"

namespace tsomon::predict {

// Events that come after the commit of all earlier stores of their thread, besides releases.
inline constexpr uint32_t kEmptiesBuffer = kinds::kDrains | kind_mask(EventKind::kSend) |
                                           kind_mask(EventKind::kPost) |
                                           kind_mask(EventKind::kTake);

// What accesses a lock, condition variable or semaphore.
inline constexpr uint32_t kUsesOfLocks = kinds::kLocks | kind_mask(EventKind::kNotify) |
                                         kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake);

struct HardEdge {
  uint32_t from = 0;  // events of the trace, from < to
  uint32_t to = 0;
  bool if_both = false;  // `to` may happen without `from`, but not before it
};

// Sorted by `to`. `carried`: so many events at the beginning were.
std::vector<HardEdge> hard_edges(const Trace& trace, const CellTable& cells, uint32_t carried = 0);

}  // namespace tsomon::predict
