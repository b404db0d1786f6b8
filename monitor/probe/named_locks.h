// Functions that acquire and release locks, named by the option lock=.
//
// Names       lock_name.h says what a function does. lock=ACQUIRE/RELEASE: a pattern for each.
// Lock        The address in the first argument.
// Records     Of a call that acquires an acquisition, when it has returned; of one that releases a
//             release, before it begins. The stores are drained when one has been acquired. What the
//             function does itself, and what it calls, is not recorded.
// How         The compiler wrappers leave five bytes of nothing where a function begins. There a
//             call of enter_lock_function() is written, which calls the function proper and
//             comes back with its result. So it does not matter where the compiler keeps the
//             argument, nor how the function is left: an exception passes. With --dormant the bytes are in the twin
//             (assembler/twins.h), so plain code has none.
// Misses      Functions that were inlined, and copies without their first argument (mark them
//             noipa, for clang noinline); functions of shared libraries; those that are
//             left by longjmp, after which the thread's next call of a lock's function mends what
//             is left; more than 128 bytes of arguments on the stack.
// Thread-safety: find_lock_functions() before there are threads.
#pragma once

namespace tsomon::probe {

// Looks the functions up; false, with a message, when nothing matches and it is `required`.
bool find_lock_functions(bool required);

}  // namespace tsomon::probe
