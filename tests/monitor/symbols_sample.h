#pragma once

#include <cstdint>

// Called by a call of its own, never as a copy for some arguments, which only gcc makes.
#ifdef __clang__
#define SAMPLE_APART [[gnu::noinline]]
#else
#define SAMPLE_APART [[gnu::noinline, gnu::noclone]]
#endif

namespace sample {

struct Pool {
  int taken = 0;
  SAMPLE_APART uint64_t take(int count);
};

extern int counters[4];           // in .bss
extern const volatile int limit;  // in .rodata

uint64_t call_inlined(Pool& pool);
uint64_t call_lambda(Pool& pool);

// Leads to Pool::take by two calls of one function and by one of another one, which is called in a loop of two functions.
uint64_t call_take(Pool& pool, int depth);

}  // namespace sample
