// System calls of the runtime itself, and the switch from one stack to another.
//
// Purpose     Where executions run in place (in_place.h) every system call of the program is looked
//             at first; those made here are not. So the runtime calls the kernel by these
//             functions wherever the program may be running.
// Thread-safety: kernel_call() as the call itself.
#pragma once

#include <concepts>
#include <cstdint>

namespace tsomon::explore {

// Where a thread goes on: its stack, with the registers that a call preserves on it, and the
// address of its thread-local storage.
struct Context {
  uint64_t stack;
  uint64_t thread_pointer;
};

}  // namespace tsomon::explore

extern "C" {
// The kernel's result: -errno where it failed.
long tsomon_kernel_call(long number, long a, long b, long c, long d, long e, long f);
// Goes on at `to`; returns when somebody switches to `from`.
void tsomon_switch(tsomon::explore::Context* from, const tsomon::explore::Context* to);
// Saves where the calling thread is, sets `*parked` to 1, wakes who sleeps on it, and sleeps for
// good without using its stack. Another thread goes on at `from`.
void tsomon_park(tsomon::explore::Context* from, uint32_t* parked);
// What signal handlers return to.
void tsomon_return_from_handler();
extern const char tsomon_kernel_begin[];
extern const char tsomon_kernel_end[];
// The instruction wrfsbase may be used.
extern uint8_t tsomon_has_wrfsbase;
}

namespace tsomon::explore {

inline long kernel_word(const volatile void* pointer) { return reinterpret_cast<long>(pointer); }
inline long kernel_word(std::integral auto number) { return static_cast<long>(number); }

// Numbers and pointers, at most six.
template <typename... Arguments>
long kernel_call(long number, Arguments... arguments) {
  const long words[6] = {kernel_word(arguments)...};
  return tsomon_kernel_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
inline bool kernel_failed(long result) { return result < 0 && result > -4096; }

}  // namespace tsomon::explore
