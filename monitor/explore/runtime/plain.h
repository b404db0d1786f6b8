// Accesses that the program's own instructions make, behind the hook.
//
// Purpose     What the compiler's hooks announce becomes steps. The processor makes several accesses
//             of one of more than eight bytes, and others may come in between: each shared word (or the
//             part of it that others access by itself) is a step of its own.
// Loads       The steps come at the hook. Until the thread's next step memory holds what they read,
//             whatever others have written between them: that is what the instructions load.
// Stores      The steps come when the thread comes to what is next: then the program has stored, and
//             the values are known. Memory is as it was before until then.
// Copies      Of an aggregate g++ announces the store first, then the load, then copies. A load's hook
//             that follows a store's with no store in the code between them is of that kind, and the
//             store is made after it.
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// Whether several threads access it; the access is noted (accesses.cpp).
bool is_shared(uint64_t address, uint32_t size, bool write, uint64_t pc = 0);
// Where the word ends, or the part of it that others access by itself (accesses.cpp).
uint64_t end_of_part(uint64_t address);

// At most kMostPlain bytes. True: some of it is shared. `state`: of the caller; nullptr: of no loop.
bool announce_load(uint64_t address, uint32_t size, const State* state, uint64_t pc);
bool announce_store(uint64_t address, uint32_t size, uint64_t pc);
// Before the thread's next step, and before what it says.
void settle(Thread& thread);

}  // namespace tsomon::explore
