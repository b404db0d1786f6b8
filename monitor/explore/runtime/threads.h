// Real threads for those of the program, and their stacks.
//
// Thread-safety: as state.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore {

uint64_t stack_begin(uint32_t number);
// False: there is no memory, or the kernel has no thread for it.
bool start_real_thread(uint32_t number, size_t stack_size, pthread_t* handle);
uint32_t thread_being_started();  // 0: none

}  // namespace tsomon::explore
