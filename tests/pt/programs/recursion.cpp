// Deep recursion: more frames than the processor's stack of return addresses holds.
#include "traced.h"

static uint64_t calls;
static uint64_t depth_of[128];

__attribute__((noinline)) static uint64_t descend(unsigned depth) {
  ++calls;
  ++depth_of[depth];
  if (depth == 0) {
    return 1;
  }
  TRACE_VALUE(depth);
  return descend(depth - 1) + depth;
}

__attribute__((noinline)) static uint64_t fibonacci(unsigned n) {
  ++calls;
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main() {
  begin_trace();
  uint64_t sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += descend(100 + i);
  }
  sum += fibonacci(14);
  end_trace();
  return sum == 0;
}
