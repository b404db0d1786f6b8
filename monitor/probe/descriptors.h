// Orders that the kernel makes through descriptors, recorded as sends and receives.
#pragma once

#include <cstdint>

namespace tsomon::probe {

// Before and after a call by which what this thread has done may be known to another one. What it
// is known by is the number of the descriptor or, at a pipe or a pair of sockets, one of the two
// numbers. The store buffer is drained, as the kernel's locks do. errno is kept.
void sends_through(int descriptor, uint64_t pc);
void receives_through(int descriptor, uint64_t pc);
// After it was opened; ends where the program closes it, of which nothing need be said.
void descriptor_begins(int descriptor, uint64_t pc);

}  // namespace tsomon::probe
