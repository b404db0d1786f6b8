// The text that a compiler gives its assembler, with entries by which functions become their twins.
//
// Purpose     --dormant: of each function a plugin of the compiler has made two versions, NAME and NAME.tsomon
//             (monitor/probe/gcc/tsomon_twins.cpp). Here
//             - NAME begins with five bytes, a9 and the distance to the twin: `test $distance, %eax`, which
//               changes nothing but the flags, and those mean nothing where a function begins. Is the first byte
//               e9, it is `jmp NAME.tsomon`. So one byte is what the runtime writes to watch a function,
//               and both before and after it the processor sees a whole instruction;
//             - the place of that byte goes into the section tsomon_twins, as its distance, 32 bits;
//               sections of functions that the linker drops go with them;
//             - each module tells the runtime where its section is when it is loaded, and when it goes;
//             - NAME.tsomon begins with five bytes of nothing, for a call that the option lock= writes there (named_locks.h);
//             - in a twin, calls of the C library that the runtime is to see (tools/tsomon-wrapped) go to its
//               __wrap_NAME, and calls of twins whose plain function is here go to that: it
//               leads back to the twin while the program is watched, and to plain code when it is not;
//             - in a plain function, copies that the compiler makes go to the C library's own functions.
// Complexity  Two passes, O(size). Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tsomon::assembler {

// A twin, or what the compiler made of one: "f.tsomon", "f.tsomon.constprop.0".
bool is_twin(std::string_view function);

// Nothing: there are no twins in it.
std::optional<std::string> with_twins(std::string_view text);

}  // namespace tsomon::assembler
