// Executions in one process, one after the other, without a fork for each.
//
// Purpose     A process that serve_from_first_thread() made runs the program from there again and
//             again. Memory is brought back after each execution (memory_image.h). Threads take
//             turns on one thread of the kernel: each has its stack, and the thread-local storage
//             of a real thread that was started once and sleeps for good, so errno, exceptions,
//             pthread_self, thread_local and their destructors are those of real threads.
// What cannot be brought back
//             Every system call of the program comes here first (Syscall User Dispatch, Linux 5.11).
//             Those that change nothing outside of the program's memory are made, or their result
//             is given. Any other one ends the execution here: it begins again in a process that is
//             forked for it, as every execution is where this room cannot be used. So does one that
//             writes to too much memory. A crash ends the execution with the signal.
// Misses      A program that reads its process or thread number, the processor that it is on, or
//             memory below its stack, may see other values than in a process of its own.
// Thread-safety: none: all of it runs on one thread.
#pragma once

#include "monitor/explore/runtime/state.h"

namespace tsomon::explore::in_place {

// The calling process runs executions here.
bool is_on();

// In a child of the process at the first thread; returns in every execution, and ends the process
// if that cannot be done. `begin_execution` sets the channel to what it was there.
void begin(void (*begin_execution)());

// For the scheduler.
void go_to(uint32_t thread);
// Of a real thread that has just been started: it sleeps here, and who goes to its number goes on.
void stay();
// The thread of this number is ready to run from now on. If it was not, the execution begins again
// when it is.
void need_thread(uint32_t number, size_t stack_size);
bool map(uint64_t address, uint64_t size);

[[noreturn]] void end();
// The program was ended by the signal.
[[noreturn]] void end_by_signal(int number);
// The execution cannot be brought back: another process is to run it.
[[noreturn]] void give_up(const char* why);

}  // namespace tsomon::explore::in_place
