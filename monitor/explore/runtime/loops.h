// Loops without effect: a thread that comes to the same state again waits for another value.
//
// Source      runtime.h, "Loops".
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// A hash of the thread's state where it comes to this operation.
uint64_t state_hash(const Thread& thread, const Operation& operation);
// A value that the iteration read is another one now.
bool loop_may_go_on(const Thread& thread);
// Before a load, or a locked operation: whether the thread was in the same state before.
void look_for_loop(Thread& thread, const Operation& operation);
// It may go on: from here the loop is a new one.
void begin_loop_anew(Thread& thread, const Operation& operation);
void note_effect_on_loop(Thread& thread, const Operation& operation, const Done& done);

}  // namespace tsomon::explore
