// memcpy for the runtime itself: the C library's is interposed, and would be recorded.
//
// Thread-safety: as memcpy. Safe in signal handlers.
#pragma once

#include <cstddef>

namespace tsomon::probe {

// Gives the place after the copy.
inline char* copy(void* to, const void* from, size_t size) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return static_cast<char*>(to);
}

}  // namespace tsomon::probe
