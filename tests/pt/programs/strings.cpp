// The C library's string functions, with their vector code and rep instructions.
#include <cstdio>
#include <cstring>

#include "traced.h"

static char text[4096];
static char copy[4096];
static size_t total;

int main() {
  begin_trace();
  for (int i = 0; i < 60; ++i) {
    const int length = std::snprintf(text, sizeof text, "%d and %s, %.2f", i, "some text", i / 3.0);
    TRACE_VALUE(length);
    std::memcpy(copy + i, text, static_cast<size_t>(length) + 1);
    total += std::strlen(copy + i);
    if (std::strchr(copy + i, ',') == nullptr) {
      return 1;
    }
    asm volatile("cld\n\trep stosb" ::"D"(text + 100), "c"(i), "a"(0) : "memory");
    total += static_cast<size_t>(std::memcmp(copy + i, text, 3) == 0);
  }
  end_trace();
  return total == 0;
}
