// The controlled runtime of explored programs.
//
// Purpose     In a program that `tsomon explore` starts, the hooks of the compiler and
//             the functions of threads and locks come here instead of to the recorder.
//             One thread runs at a time, chosen at each operation on memory that
//             threads share, or on an object of synchronisation, by the schedule of the
//             request.
// Threads     Where executions run in place (in_place.h) the program's threads take turns on one
//             thread of the kernel. In an execution that was forked each is a real thread, and they
//             hand over a baton (a futex), all on one processor, which debuggers understand.
// Start       Until the program starts its first thread nothing is an operation: that is
//             the initial state. What one thread alone accesses is none either; words
//             that turn out to be shared are told, and the exploration begins again with
//             them.
// Store buffer  Under TSO the thread that runs sees its own buffered stores in memory, and the
//             baton passes without them: they are taken out, newest first, and put back when the
//             thread goes on. A plain store is made when the thread comes to what is next (plain.h).
// Loops       At each load the runtime compares the thread's state, callee-saved registers and
//             stack, with that at earlier loads since it last had an effect. The same state at the
//             same place means an iteration without effect: the thread waits until one of the
//             values that the iteration read is another one.
// Waits       A wait on a condition may wake by itself, one with a time limit may give up: answers
//             that the schedule chooses (Op::kAnswer). A thread that woke so, and comes back to the
//             same wait in the same state with no effect in between, stays there: the wait that it
//             came from could as well have gone on (waits.h).
// Determinism Addresses of stacks and heap blocks depend on the thread and on how many it has had;
//             freed memory is not used again, or by the thread that freed it. Clocks are virtual.
// Assembly    The accesses of asm statements come here as those of atomics do (assembly()). An execution with one that
//             is not understood is judged by nobody: `not_understood` of the channel says which.
// Misses      Libraries that are not instrumented, which address a later malloc could reuse. Copies of aggregates of more than 256 bytes are one step (`unsaid`).
// Thread-safety: all of it runs with the baton.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include <pthread.h>

#include "monitor/explore/channel.h"

namespace tsomon::explore {

// This process runs under control: all hooks come here.
extern bool active;

// Callee-saved registers and the stack at the call of a hook.
struct State {
  uint64_t registers[6];
  uint64_t stack;   // above the return address
  uint64_t others;  // of an asm statement, which may use any: of the other registers; else 0
};

struct Operation {
  Op op = Op::kLoad;
  bool inserted = false;   // by the exploration (repairs.h)
  bool divisible = false;  // part of a copy
  bool timed = false;      // its thread could give up instead
  uint8_t size = 0;
  uint64_t address = 0;
  Value a = 0;
  Value b = 0;
  uint64_t pc = 0;
  const State* state = nullptr;  // of loads
};

struct Done {
  Value read = 0;
  Value written = 0;
};

void serve_if_asked();  // at the start; returns in children that explore, and where nobody asked

// All executions do the same up to here; returns in each.
void serve_from_first_thread();

Channel* the_channel();
// The address is in the calling thread's stack above `from`.
bool on_stack(uint64_t address, uint64_t from);

// Waits for its turn and performs the operation.
Done step(const Operation& operation);
// Started threads are there, or were.
bool is_concurrent();
uint32_t this_thread();
// An effect that no operation tells of: the thread is not in a loop without effect.
void had_effect();
// Not an effect, yet nothing that a loop without effect does.
void leaves_loop();
void mark(MarkKind kind, uint32_t value);
uint32_t label(const char* name, size_t size);
unsigned enter_unit(const char* name);
void leave_unit(unsigned unit);
void say_outcome(const char* text);
void say_call(const char* text, uint64_t pc);
void say_return(const char* text);
[[noreturn]] void refuse(const char* function);
[[noreturn]] void finish(End end, int status);
[[noreturn]] void end_run(End end, const char* why);
// What the thread has stored so far becomes steps.
void make_stores();
// Returns where an execution has a process of its own, which ends.
void end_by_abort();
// The C library's memcpy is a hook: here probe::copy() is used.
void note_unsaid();
// Threads that the calling one has not joined.
bool others_may_run();
// As if all of it were written. True: several threads access some of it.
bool note_freed(uint64_t address, size_t size);
void mark_freed(uint64_t address, size_t size);
// Tables that only programs under control have, and that no memory is brought back in.
void* take_zeroed(size_t bytes);
void take_owners();
void forget_owners();  // all that were noted

// The hooks, with the arguments of the compiler's.
void plain(bool store, const volatile void* address, uint32_t size, uint64_t pc);
// True: one step was made of all.
bool range(bool store, const volatile void* address, size_t size, uint64_t pc);
// False: nothing was done, there is nothing to be done step by step.
bool copy(void* to, const void* from, size_t size, uint64_t pc);
bool fill(void* to, int value, size_t size, uint64_t pc);
// Into memory that is the calling thread's alone. Only with is_concurrent().
void load_copy(void* to, const void* from, size_t size, uint64_t pc);
template <typename T>
T load(const volatile T* address, int order);
template <typename T>
void store(volatile T* address, T value, int order);
template <typename T>
T modify(volatile T* address, T value, Op op);
template <typename T>
int compare_exchange(volatile T* address, T* expected, T desired);
// Of libatomic's functions: T has the object's size, what is passed lies anywhere.
template <typename T>
void load_object(const volatile void* object, void* to);
template <typename T>
void store_object(volatile void* object, const void* from, int order);
template <typename T>
void exchange_object(volatile void* object, const void* from, void* to);
template <typename T>
bool compare_exchange_object(volatile void* object, void* expected, const void* from);
void fence(int order);
// Of asm statements: loads, stores, locked operations, fences. `stack`: where the statement's is. Returns what was read.
Value assembly(const Operation& operation, uint64_t stack);
void not_understood(const char* text);  // its place and instruction

// Threads.
int create_thread(pthread_t* handle, const pthread_attr_t* attributes, void* (*routine)(void*),
                  void* argument);
int join_thread(pthread_t handle, void** value);
int detach_thread(pthread_t handle);
void set_thread_result(void* value);

// Objects of synchronisation; what the functions of the C library return.
int mutex_lock(pthread_mutex_t* mutex, bool waits, uint64_t pc, bool timed = false);
// The calling thread has it, and may take it again or is told so.
bool keeps(const pthread_mutex_t* mutex);
int mutex_unlock(pthread_mutex_t* mutex, uint64_t pc);
// 0, or EBUSY of a try that failed
int object(Op op, const volatile void* object, uint64_t pc, bool timed = false);
int spin(Op op, const volatile void* lock, uint64_t pc);
// `until`: a valid time of any clock; nullptr: none.
int condition_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until,
                   uint64_t place);
// kLock, kReadLock, kWriteLock: 0 or ETIMEDOUT; kSemaphoreWait: 0 or -1.
int take_until(Op op, void* object, const timespec* until, uint64_t place);
int semaphore(Op op, void* semaphore, uint64_t pc, bool timed = false);  // 0, or -1
int barrier_wait(pthread_barrier_t* barrier, uint64_t pc);
int once(pthread_once_t* control, void (*routine)(), uint64_t pc);
int guard_acquire(uint64_t* guard, uint64_t pc);
void guard_release(uint64_t* guard, bool done, uint64_t pc);

// Memory.
void* allocate(size_t size, size_t alignment, bool zeroed = false);
void release(void* pointer, uint64_t pc);
// Memory that was freed has this address, or one inside it.
bool was_freed(uint64_t address);
// End the run: the access is to freed memory; the value that was read is nobody's.
void check_alive(uint64_t address, uint64_t pc);
void check_written(uint64_t address, uint32_t size, Value value, uint64_t pc);
bool owns(const void* pointer);
size_t size_of(const void* pointer);

bool controls_futex(long address);  // the runtime sleeps on words of its own
int64_t virtual_time();             // nanoseconds; later than before, but in idle waits
void pass_time(int64_t nanoseconds);
void pass_time_until(const timespec& until);

}  // namespace tsomon::explore
