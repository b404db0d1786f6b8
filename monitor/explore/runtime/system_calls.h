// What the program asks the kernel for while executions run in place, and its signals.
//
// Thread-safety: as in_place.h.
#pragma once

#include <cstdint>

namespace tsomon::explore::in_place {

// nullptr: the kernel can do it, and the program has no signal handler and blocks none of the
// signals that are needed.
const char* why_not_watched();
// Takes the memory that is needed, and the first thread's stack as far as an execution may go.
void take_system_calls();
void* image_memory();
void grow_first_stack();
bool begin_system_calls();
// The program runs from now on, or does not.
void watch_system_calls(bool watch);

}  // namespace tsomon::explore::in_place
