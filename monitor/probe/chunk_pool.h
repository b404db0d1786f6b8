// The pool of chunks, and the two queues between threads and who writes: of full chunks, and of empty ones.
//
// Threads     What they call does not allocate and takes no lock; with signals blocked.
// Writer      One thread at a time (chunk_writer.h).
#pragma once

#include <cstddef>

#include "monitor/probe/runtime.h"

namespace tsomon::probe {

// An empty chunk. When there is none: waits, or nullptr under on_full=drop or when recording ends.
Chunk* take_empty_chunk(Thread* thread);
// Its size is set; 0: it only goes back. The writer thread is woken for chunks of threads that go
// on; of threads that end, for every sixteenth or when few empty ones are left: waking it costs as
// much as a short thread.
void give_full_chunk(Thread* thread, Chunk* chunk, bool ends = false);
// What it holds is of no use: it goes back.
void return_chunk(Thread* thread, Context* context);
// The thread has ended: its chunks go to the pool.
void give_up_emptied(Thread* thread);

// How many chunks the writer thread has emptied.
uint32_t chunks_returned();

// More chunks for the pool; not concurrently.
void add_chunks(size_t count);

// A thread's right to enqueue; nullptr when memory is short. `memory`: that of an earlier one, if any.
void* new_token(void** memory);
void free_token(void* token);

// The writer's.

// Two queues with nothing in them; once, and after fork.
void prepare_chunk_pool();
// nullptr: there is none.
Chunk* take_full_chunk();
// It is empty again.
void recycle_chunk(Chunk* chunk);
// Counts full chunks, and what else the writer was woken for.
uint32_t chunks_given();
// Until that has another value, somebody wakes the writer, or so many microseconds are over; below 0: any time.
void wait_for_chunks(uint32_t seen, long microseconds);
void wake_writer();
// Those that wait for an empty chunk: recording has ended.
void wake_takers();

}  // namespace tsomon::probe
