// What is known of the registers where the threads of a process begin, and where they create each
// other.
//
// Purpose     A new thread has the registers of its creator before the call, but for the stack
//             pointer, what the call changes, and the base of fs where the call gives another one.
//             What is known at one end is a fact at the other one.
// Pairs       Which call created which thread is certain where one of them has only one left that
//             it may belong to: of the calls that return where the thread's path begins, those that
//             were not later, and where nothing differs that is known at both ends.
// Requires    That every call has created a thread, all of which are there (Interference says so).
// Misses      The stack pointer of the new thread. Calls that cannot be told apart: none of them is
//             used. More than 128 calls: none is.
// Thread-safety: pure function. Complexity O(threads + calls^3) at most.
#pragma once

#include <vector>

#include "decoders/pt/memory/accesses.h"
#include "decoders/pt/memory/interference.h"

namespace tsomon::pt {

// For each of the threads, what is known of it there by one pass over all of them: of its own
// beginning, as well; by place. `created`: positions of those that calls have created.
std::vector<std::vector<PlacedSample>> facts_of_creations(const std::vector<ThreadStores*>& threads,
                                                          const std::vector<size_t>& created);

}  // namespace tsomon::pt
