// Compiled with debug information at -O1, whatever the build: code with known lines.
#include "tests/monitor/symbols_sample.h"

namespace sample {
namespace {

// Its return address is a pc as the compiler hooks get it.
[[gnu::noinline]] uint64_t hook() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}

}  // namespace

[[gnu::always_inline]] inline uint64_t inlined(Pool& pool) {
  const uint64_t pc = hook();  // line 15
  ++pool.taken;
  return pc;
}

uint64_t Pool::take(int count) {
  taken += count;
  const uint64_t pc = hook();  // line 22
  ++taken;
  return pc;
}

uint64_t call_inlined(Pool& pool) {
  const uint64_t pc = inlined(pool);  // line 28
  ++pool.taken;
  return pc;
}

// Inlined, unlike the lambda that is written in it.
template <bool kTwice>
[[gnu::always_inline]] inline uint64_t with_lambda(Pool& pool) {
  const auto take = [&pool](int count) __attribute__((noinline)) {
    pool.taken += kTwice ? 2 * count : count;
    return inlined(pool);  // line 38
  };
  return take(3);
}

uint64_t call_lambda(Pool& pool) {
  const uint64_t pc = with_lambda<true>(pool);
  ++pool.taken;
  return pc;
}

// Behind all lines that others count on.
SAMPLE_APART uint64_t take_twice(Pool& pool) {
  uint64_t pc = pool.take(2);  // line 51
  pc |= pool.take(3);          // line 52
  ++pool.taken;
  return pc;
}

SAMPLE_APART uint64_t again(Pool& pool, int depth) {
  const uint64_t pc = call_take(pool, depth - 1) + 1;
  ++pool.taken;
  return pc;
}

uint64_t call_take(Pool& pool, int depth) {
  uint64_t pc = take_twice(pool);  // line 64
  if (depth > 0) {
    pc += again(pool, depth);
  }
  ++pool.taken;
  return pc;
}

int counters[4];
const volatile int limit = 7;

}  // namespace sample
