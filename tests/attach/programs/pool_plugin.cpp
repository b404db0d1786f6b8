// The pool of tasks as a module that is loaded later (plain_later.cpp); with POOL_FENCED its takes
// are fenced.
#define POOL_TAKE inline __attribute__((always_inline))
#include "pool.h"

#ifdef POOL_FENCED
constexpr bool kFenced = true;
#else
constexpr bool kFenced = false;
#endif

extern "C" {

void plugin_fill(uint64_t tasks) {
  head.store(0);
  tail.store(tasks);
}

__attribute__((noinline)) bool plugin_take_head(uint32_t thread) {
  return take_head<kFenced>(thread);
}

__attribute__((noinline)) bool plugin_take_tail(uint32_t thread) {
  return take_tail<kFenced>(thread);
}
}
