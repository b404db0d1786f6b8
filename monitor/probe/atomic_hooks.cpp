// Atomics of the compiler (atomic_operations.h says how they are performed).
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/atomic_operations.h"

namespace probe = tsomon::probe;
namespace explore = tsomon::explore;

// Under control the first thing is a jump: the program's registers are still there.
#define TSOMON_IF_EXPLORED(...)           \
  if (TSOMON_UNLIKELY(explore::active)) { \
    return explore::__VA_ARGS__;          \
  }

#define TSOMON_FETCH(BITS, T, NAME, OP, EXPRESSION)                               \
  TSOMON_HOOK T __tsan_atomic##BITS##_fetch_##NAME(volatile T* a, T v, int) {     \
    TSOMON_IF_EXPLORED(modify(a, v, explore::Op::OP))                             \
    return probe::modify(a, TSOMON_PC(), [v](T old) { return (T)(EXPRESSION); }); \
  }

#define TSOMON_ATOMIC(BITS, T)                                                                   \
  TSOMON_HOOK T __tsan_atomic##BITS##_load(const volatile T* a, int order) {                     \
    TSOMON_IF_EXPLORED(load(a, order))                                                           \
    return probe::load(a, TSOMON_PC());                                                          \
  }                                                                                              \
  TSOMON_HOOK void __tsan_atomic##BITS##_store(volatile T* a, T v, int order) {                  \
    TSOMON_IF_EXPLORED(store(a, v, order))                                                       \
    probe::store(a, v, order, TSOMON_PC());                                                      \
  }                                                                                              \
  TSOMON_HOOK T __tsan_atomic##BITS##_exchange(volatile T* a, T v, int) {                        \
    TSOMON_IF_EXPLORED(modify(a, v, explore::Op::kExchange))                                     \
    return probe::exchange(a, v, TSOMON_PC());                                                   \
  }                                                                                              \
  TSOMON_HOOK T __tsan_atomic##BITS##_fetch_add(volatile T* a, T v, int) {                       \
    TSOMON_IF_EXPLORED(modify(a, v, explore::Op::kAdd))                                          \
    return probe::fetch_add(a, v, TSOMON_PC());                                                  \
  }                                                                                              \
  TSOMON_HOOK T __tsan_atomic##BITS##_fetch_sub(volatile T* a, T v, int) {                       \
    TSOMON_IF_EXPLORED(modify(a, (T)(0 - v), explore::Op::kAdd))                                 \
    return probe::fetch_add(a, (T)(0 - v), TSOMON_PC());                                         \
  }                                                                                              \
  TSOMON_FETCH(BITS, T, and, kAnd, old& v)                                                       \
  TSOMON_FETCH(BITS, T, or, kOr, old | v)                                                        \
  TSOMON_FETCH(BITS, T, xor, kXor, old ^ v)                                                      \
  TSOMON_FETCH(BITS, T, nand, kNand, ~(old & v))                                                 \
  TSOMON_HOOK int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* a, T* expected, T v, \
                                                                int, int) {                      \
    TSOMON_IF_EXPLORED(compare_exchange(a, expected, v))                                         \
    return probe::compare_exchange_recorded(a, expected, v, TSOMON_PC());                        \
  }                                                                                              \
  TSOMON_HOOK int __tsan_atomic##BITS##_compare_exchange_weak(volatile T* a, T* expected, T v,   \
                                                              int, int) {                        \
    TSOMON_IF_EXPLORED(compare_exchange(a, expected, v))                                         \
    return probe::compare_exchange_recorded(a, expected, v, TSOMON_PC());                        \
  }                                                                                              \
  TSOMON_HOOK T __tsan_atomic##BITS##_compare_exchange_val(volatile T* a, T expected, T v, int,  \
                                                           int) {                                \
    if (TSOMON_UNLIKELY(explore::active)) {                                                      \
      explore::compare_exchange(a, &expected, v);                                                \
      return expected;                                                                           \
    }                                                                                            \
    probe::compare_exchange_recorded(a, &expected, v, TSOMON_PC());                              \
    return expected;                                                                             \
  }

TSOMON_ATOMIC(8, uint8_t)
TSOMON_ATOMIC(16, uint16_t)
TSOMON_ATOMIC(32, uint32_t)
TSOMON_ATOMIC(64, uint64_t)
TSOMON_ATOMIC(128, unsigned __int128)

TSOMON_HOOK void __tsan_atomic_thread_fence(int order) {
  TSOMON_IF_EXPLORED(fence(order))
  if (order != probe::kSeqCst) {
    asm volatile("" : : : "memory");
    return;
  }
  probe::Operation operation(tsomon::capture::RecordType::kFence, nullptr, 0, 0, TSOMON_PC());
  __builtin_ia32_mfence();
  operation.done_locked();
}
TSOMON_HOOK void __tsan_atomic_signal_fence(int) { asm volatile("" : : : "memory"); }

// libatomic's functions for one size have the parameters of the compiler's hooks (atomic_objects.cpp has the others).
#define TSOMON_SAME(NAME, HOOK) \
  asm(".weak __atomic_" NAME "\n.set __atomic_" NAME ", __tsan_atomic" HOOK);
#define TSOMON_SIZED(BYTES, BITS)                                         \
  TSOMON_SAME("load_" BYTES, BITS "_load")                                \
  TSOMON_SAME("store_" BYTES, BITS "_store")                              \
  TSOMON_SAME("exchange_" BYTES, BITS "_exchange")                        \
  TSOMON_SAME("compare_exchange_" BYTES, BITS "_compare_exchange_strong") \
  TSOMON_SAME("fetch_add_" BYTES, BITS "_fetch_add")                      \
  TSOMON_SAME("fetch_sub_" BYTES, BITS "_fetch_sub")                      \
  TSOMON_SAME("fetch_and_" BYTES, BITS "_fetch_and")                      \
  TSOMON_SAME("fetch_or_" BYTES, BITS "_fetch_or")                        \
  TSOMON_SAME("fetch_xor_" BYTES, BITS "_fetch_xor")                      \
  TSOMON_SAME("fetch_nand_" BYTES, BITS "_fetch_nand")
TSOMON_SIZED("1", "8")
TSOMON_SIZED("2", "16")
TSOMON_SIZED("4", "32")
TSOMON_SIZED("8", "64")
TSOMON_SIZED("16", "128")
