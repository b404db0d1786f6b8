// Store buffers: the stores of a thread that memory does not hold while others run.
//
// Errors      More than 64 stores in a buffer end the run.
// Source      runtime.h, "Store buffer".
// Thread-safety: as state.h.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

// A store of the thread has begun that it does itself behind the hook, or was done; `step`: of it.
void open_store(Thread& thread, const Operation& operation, uint32_t step, Value covered);
void buffer_store(Thread& thread, const Buffered& store);
// The thread has stored what it announced.
void close_store(Thread& thread);
// Out of memory, and back: what others see, and what the thread sees.
void take_out(Thread& thread);
void put_in(Thread& thread);
// The oldest leaves the buffer, which is not in memory.
Buffered commit_oldest(Thread& thread);

}  // namespace tsomon::explore
