// The recording core: what a thread writes into, and how it reaches the file.
//
// Path of a record: the thread's encoder, which packs it into the thread's chunk (plain memory of
// its own, no lock, no atomic instruction) -> ConcurrentQueue of full chunks -> one writer thread
// that compresses and appends -> back to the thread, or to the queue of empty chunks. All memory is
// taken when the program and its threads start, or with mmap.
//
// Publication  The encoder keeps a position up to which everything is readable at any time, by
//              another thread and by a signal handler (decoders/capture/encoder.h).
// Signals      A handler may interrupt a hook anywhere and run hooks itself. Handing over and all
//              locks run with signals blocked. Handlers run inside enter_handler/leave_handler:
//              a handler has an encoder and chunks of its own, placed in the thread's stream at
//              the point of the interruption (ChunkStart), so the interrupted hook finds its
//              encoder as it left it.
// Start        Nothing is recorded before the process first starts a thread or a unit, atomics
//              included: all that comes before everything else through the fork edge, no cycle goes
//              through it, and the trace begins with the memory it left.
// End          finish() asks the writer thread to take what lies in all chunks and to write the
//              trailer. Threads that run on are cut at that moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pthread.h>
#include <signal.h>

#include "decoders/capture/encoder.h"
#include "monitor/probe/context.h"
#include "monitor/probe/guard.h"
#include "monitor/probe/messages.h"
#include "monitor/probe/options.h"
#include "monitor/probe/records.h"

namespace tsomon::probe {

// Starts recording when this is the first unit or thread.
void activate(uint64_t pc);  // where it is called from; 0: the runtime
bool activated();
void put_known_objects();  // those that are there when recording starts
void start();

// Threads. begin_thread runs on the new thread.
void prepare_threads();
void count_threads_after_fork();
void use_alternate_stack();    // so that a handler can run when the stack is full
void leave_alternate_stack();  // when the thread ends
Thread* new_thread();
void begin_thread(Thread* thread);
void end_thread();
void abandon_thread(Thread* thread);
// The calling thread goes on as `to`, which no other thread runs; the one that it leaves stays as
// it is. It should have drained its stores.
void switch_thread(Thread* to);
// False: a fork has left it behind.
bool is_of_this_process(const Thread* thread);
// A fiber that does not run and never will.
void end_fiber(Thread* fiber);
// In the capture, and in reports. At most 255 bytes count.
void name_thread(const Thread* thread, const char* name);
void forget_thread_names();  // after fork

// Whether one of these signals would end the process (bit number - 1).
bool end_process(uint64_t signals);

// Writes everything recorded so far and the trailer; later calls do nothing. Async-signal-safe.
void finish();

// Nothing is recorded any more, and no system call is made.
void give_up_recording();

// Around fork: no lock is held by another thread in the child, which begins with nothing recorded.
void lock_for_fork();
void unlock_after_fork();
void reset_after_fork();
void lock_labels();
void unlock_labels();
void lock_sets();
void unlock_sets();

// Declares the globals that the option set= names. When there is none for one of the patterns there
// is a message, and if one is `required` the answer is false.
bool declare_named_sets(bool required);

struct HandlerFrame {
  Context* context;  // that was interrupted; nullptr: there is nothing to go back to
};
// `interrupted`: the ucontext_t of the signal. Handlers that a jump or an exception has left are left here.
void enter_handler(HandlerFrame* frame, const void* interrupted);
void leave_handler(HandlerFrame* frame);

// Memory that a thread gives back when it ends. Its contents are undefined; nullptr: there is none.
inline constexpr size_t kBlockSize = 65536;
void* take_block();
void give_block(void* block);

// Before a system call of the program by number. One that restricts those to come ends recording.
void calls_kernel(long number, long first);

// Id of a label, interned by its text.
uint32_t label_id(const char* name, size_t size);

// Weak: a function of the program's own that happens to have the name of one of the C library's is
// the program's.
#define TSOMON_HOOK extern "C" __attribute__((visibility("default"), used, weak))
#define TSOMON_PC() reinterpret_cast<uint64_t>(__builtin_return_address(0))

}  // namespace tsomon::probe
