// The list of threads that are recorded, for those who decide which these are (slices.h).
//
// Thread-safety: as said of each.
#pragma once

#include <atomic>
#include <cstdint>

#include "monitor/probe/context.h"

namespace tsomon::probe {

extern std::atomic<uint32_t> threads_lock;  // with Guard
extern std::atomic<uint32_t> next_number;
extern std::atomic<Thread*> all_threads;  // the newest

// With a ChunkSwitch: the calling thread records as `thread` from now on, in an empty chunk.
void begin_stream(Thread* thread, Context* context);
// Memory of threads that have ended is for new ones. With nobody who walks through the list without `threads_lock`.
void forget_ended_threads();

}  // namespace tsomon::probe
