// Whose turn it is.
//
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// The next step of the run, of this thread.
Step* new_step(Op op);
// The step is whole, as far as it will be before the next one.
void publish();
void wait_for_turn(Thread& thread);
// The first thread comes under control (threads.cpp).
void begin_threads();

}  // namespace tsomon::explore
