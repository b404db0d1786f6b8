// From full chunks (chunk_pool.h) to the file: the writer thread, or in slices the thread that was asked for one.
#pragma once

#include <cstddef>

#include "monitor/probe/runtime.h"

namespace tsomon::probe {

// Opens the file, takes the memory and starts the writer thread. False with a message written.
bool start_chunk_writer(const char* path);

// For slices (slices.h), instead of that, on one thread of the runtime. Memory for what is to come; once.
void prepare_chunk_writer();
// What is recorded in the next slice goes to this file, which is then the writer's. 0, or an errno value.
int open_slice(int descriptor);
// Chunks may change hands from now on: once nobody takes part in the slice before.
void take_chunks();
// Writes what comes within so many microseconds; false: finish() was called.
bool write_slice(long microseconds);
// Of records that threads have handed over since; after finish_slice() all.
uint64_t slice_bytes();
// Writes the rest and the trailer. 0, or an errno value: the first failure.
int finish_slice();
// After whoever asked was answered: finish() waits for it, and the process ends then.
void let_program_end();
// Ends the writer thread for the time being, and those of the clock; false: it goes on. By the only thread of the program.
bool pause_chunk_writer();
// False with a message written: nothing more is recorded.
bool continue_chunk_writer();
// In a child of fork, which does not record to its parent's file.
void leave_chunk_writer();

// Zeroed, for the life of the process; nullptr when there is none. Async-signal-safe.
void* take_memory(size_t size);

// The newest thread; the others by Thread::next.
Thread* threads();

// Copies the labels from number `from` on as TextEntry into [at, end); returns the place after.
char* copy_labels(uint32_t* from, char* at, char* end);

// Names that threads got since the last call likewise.
char* copy_thread_names(char* at, char* end);

// The declarations of atomic sets likewise, as SetEntry; nullptr when there are no more.
char* copy_sets(uint32_t* from, char* at, char* end);

// True once finish() was called: chunks may no longer change hands.
bool finishing();
// A filter of system calls may end a thread alone.
bool writer_is_gone();
void wait_until_finished();
// After finish(): the runtime has no thread any more.
void end_chunk_writer();

}  // namespace tsomon::probe
