// Store buffers: the stores of a thread that memory does not hold while others run.
//
// Errors      More than 64 stores in a buffer end the run.
// Source      runtime.h, "Store buffer".
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

void buffer_store(Thread& thread, const Buffered& store);
// Out of memory, and back: what others see, and what the thread sees.
void take_out(Thread& thread);
void put_in(Thread& thread);
// The oldest leaves the buffer, which is not in memory.
Buffered commit_oldest(Thread& thread);

}  // namespace tsomon::explore
