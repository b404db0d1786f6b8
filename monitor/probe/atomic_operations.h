// Atomic operations that are recorded: the runtime performs them itself, so value and interval are exact.
//
// Each memory order is done as x86-64 compilers do it without instrumentation:
//   load, any order                  mov
//   store relaxed, release           mov, an ordinary store that waits in the store buffer
//   store seq_cst                    xchg: locked, recorded with the value it replaced
//   read-modify-write, any order     locked; also a compare-exchange that fails, which writes
//   nothing thread fence seq_cst             mfence; weaker fences are no instruction and no record
//   signal fence                     no instruction
//   16 bytes                         lock cmpxchg16b, also for loads and stores: all are locked
//                                    operations, with digests for values (records hold at most 8 bytes)
//
// Stamps. Locked operations and fences have a stamp of their own behind them, or behind the load
// that follows (Operation::done_locked). A stamp between a store and a load would keep the load
// waiting while the store commits, and the reordering that is looked for would disappear. So loads
// and stores that are a mov have a stamp before them only when the last one is not recent, and the
// thread's next stamp ends their interval (option stamp_max_age; 0 gives each its own two).
//
// The record of a locked operation is begun, with its first stamp, before the operation and
// completed after it, so what a signal handler records in between stands after it, and a crash
// leaves it marked as unfinished. A load is recorded when it is done: as little as possible is to
// lie between it and the store before it.
//
// Thread-safety: each thread for itself, and async-signal-safe, as records.h.
#pragma once

#include "monitor/probe/operation.h"
#include "monitor/probe/record_stamps.h"

namespace tsomon::probe {

using Wide = unsigned __int128;

constexpr int kRelaxed = 0;
constexpr int kRelease = 3;
constexpr int kSeqCst = 5;

// Differs for what differs in a few bits or in its order (the last steps of MurmurHash3, which is in the public domain).
inline uint64_t add_to_digest(uint64_t digest, uint64_t more) {
  digest = (digest ^ more) * 0xFF51AFD7ED558CCDULL;
  digest = (digest ^ (digest >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return digest ^ (digest >> 33);
}
template <typename T>
uint64_t value_of(T value) {
  if constexpr (sizeof(T) == 16) {
    return add_to_digest(add_to_digest(1, static_cast<uint64_t>(value)),
                         static_cast<uint64_t>(value >> 64));
  } else {
    return static_cast<uint64_t>(value);
  }
}

// cmpxchg for every size; returns whether it succeeded, `expected` becomes what was seen.
template <typename T>
bool compare_exchange(volatile T* address, T* expected, T desired) {
  if constexpr (sizeof(T) == 16) {
    auto low = static_cast<uint64_t>(*expected);
    auto high = static_cast<uint64_t>(*expected >> 64);
    bool equal = false;
    asm volatile("lock cmpxchg16b %1"
                 : "=@ccz"(equal), "+m"(*address), "+a"(low), "+d"(high)
                 : "b"(static_cast<uint64_t>(desired)), "c"(static_cast<uint64_t>(desired >> 64))
                 : "memory");
    *expected = (static_cast<T>(high) << 64) | low;
    return equal;
  } else {
    return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }
}

// As begin_open() and put_load() have it, where nothing is held back and nothing to be noted.
inline __attribute__((always_inline)) bool may_load_at_once(const Context& context) {
  const capture::Encoder& encoder = context.encoder;
  return context.repeats.word == 0 && encoder.end != context.locked &&
         (owes_stamp(context) ? capture::has_room(encoder) : can_open(context));
}
inline __attribute__((always_inline)) bool put_load_at_once(Context& context, uint64_t key,
                                                            const volatile void* address,
                                                            uint64_t value) {
  Repeats& repeats = context.repeats;
  const bool owed = owes_stamp(context);
  if (owed || repeats.end == context.encoder.end ||
      !capture::put_open_cached(context.encoder, key, reinterpret_cast<uint64_t>(address), value)) {
    return false;
  }
  repeats.key = key;
  repeats.address = address;
  repeats.value = value;
  repeats.recorded = 1;
  repeats.end = context.encoder.end;
  return true;
}

// Between a store and the load behind it lies as little as can be, and above all few stores of the probe's own: the
// bug that is looked for needs the load to be performed while the store waits, and when some 50 stores wait behind
// one that misses the caches, the processor waits, too. So what is cached is recorded here, without a call; the rest
// by the functions below.
template <typename T>
T load_slow(const volatile T* address, uint64_t pc);
template <typename T>
void store_slow(volatile T* address, T value, int order, uint64_t pc);

template <typename T>
inline __attribute__((always_inline)) T load(const volatile T* address, uint64_t pc) {
  if constexpr (sizeof(T) <= 8) {
    Context& context = *local.context;
    const uint64_t key = capture::other_key(RecordType::kAtomicLoad, sizeof(T), pc);
    if (TSOMON_LIKELY(simple_atomics && local.lock_code == 0 && may_load_at_once(context))) {
      announce_stamp(context);
      asm volatile("" : : : "memory");
      const T value = *address;
      asm volatile("" : : : "memory");
      if (TSOMON_LIKELY(put_load_at_once(context, key, address, value_of(value)))) {
        return value;
      }
      return static_cast<T>(put_load(&context, key, address, value_of(value)));
    }
  }
  return load_slow(address, pc);
}

template <typename T>
inline __attribute__((always_inline)) void store(volatile T* address, T value, int order,
                                                 uint64_t pc) {
  if (sizeof(T) <= 8 && (order == kRelaxed || order == kRelease)) {
    Context& context = *local.context;
    const uint64_t key = capture::other_key(RecordType::kAtomicStore, sizeof(T), pc);
    if (TSOMON_LIKELY(simple_atomics && can_open(context))) {
      if (owes_stamp(context)) {
        put_owed_stamp(context);
      }
      if (TSOMON_LIKELY(capture::put_open_cached(
              context.encoder, key, reinterpret_cast<uint64_t>(address), value_of(value)))) {
        asm volatile("" : : : "memory");
        *address = value;
        asm volatile("" : : : "memory");
        return;
      }
    }
  }
  store_slow(address, value, order, pc);
}

template <typename T>
__attribute__((noinline)) T load_slow(const volatile T* address, uint64_t pc) {
  if constexpr (sizeof(T) == 16) {
    Operation operation(RecordType::kFailedCompareExchange, address, sizeof(T), 1, pc);
    T seen = 0;
    compare_exchange(const_cast<volatile T*>(address), &seen, seen);
    operation.done(true, value_of(seen));
    return seen;
  } else {
    if (TSOMON_UNLIKELY(local.lock_code != 0)) {
      return __atomic_load_n(address, __ATOMIC_SEQ_CST);
    }
    if (options.stamp_max_age == 0) {
      Operation operation(RecordType::kAtomicLoad, address, sizeof(T), 1, pc);
      asm volatile("" : : : "memory");
      const T value = *address;
      asm volatile("" : : : "memory");
      operation.done(false, value_of(value));
      return value;
    }
    noise();
    const uint64_t key = capture::other_key(RecordType::kAtomicLoad, sizeof(T), pc);
    Context* const context = is_chosen_atomic(address) ? begin_load(key, address) : nullptr;
    if (context != nullptr) {
      announce_stamp(*context);
    }
    asm volatile("" : : : "memory");
    const T value = *address;
    asm volatile("" : : : "memory");
    if (context != nullptr) {
      put_load(context, key, address, value_of(value));
    }
    return value;
  }
}

// In annotated code of a lock: of an attempt that fails only the fence is recorded. The one that
// compares has failed when it does not find what it expects, another one when it writes what it
// finds, which nobody can tell from a load.
template <typename T, typename Fails>
bool fails_in_lock_code(volatile T* address, T* seen, uint64_t pc, Fails fails) {
  if constexpr (sizeof(T) < 16) {
    if (!fails(__atomic_load_n(address, __ATOMIC_RELAXED))) {
      return false;
    }
    drain_before_sleeping(pc);
    const T now = __atomic_load_n(address, __ATOMIC_RELAXED);
    if (fails(now)) {
      *seen = now;
      return true;
    }
  }
  return false;
}

// The value that `make` computes from the old one replaces it; returns the old one.
template <typename T, typename Make>
T modify(volatile T* address, uint64_t pc, Make make) {
  T old = 0;
  if (TSOMON_UNLIKELY(local.lock_code != 0) &&
      fails_in_lock_code(address, &old, pc, [&](T now) { return make(now) == now; })) {
    return old;
  }
  Operation operation(RecordType::kAtomicReadModifyWrite, address, sizeof(T), 2, pc);
  if constexpr (sizeof(T) < 16) {
    old = __atomic_load_n(address, __ATOMIC_RELAXED);
  }
  while (!compare_exchange(address, &old, make(old))) {
  }
  operation.done_locked(value_of(old), value_of(make(old)));
  return old;
}

template <typename T>
T exchange(volatile T* address, T value, uint64_t pc) {
  if constexpr (sizeof(T) == 16) {
    return modify(address, pc, [value](T) { return value; });
  } else {
    T old = 0;
    if (TSOMON_UNLIKELY(local.lock_code != 0) &&
        fails_in_lock_code(address, &old, pc, [value](T now) { return now == value; })) {
      return old;
    }
    Operation operation(RecordType::kAtomicReadModifyWrite, address, sizeof(T), 2, pc);
    old = __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);
    operation.done_locked(value_of(old), value_of(value));
    return old;
  }
}

template <typename T>
T fetch_add(volatile T* address, T value, uint64_t pc) {
  if constexpr (sizeof(T) == 16) {
    return modify(address, pc, [value](T old) { return old + value; });
  } else {
    Operation operation(RecordType::kAtomicReadModifyWrite, address, sizeof(T), 2, pc);
    const T old = __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
    operation.done_locked(value_of(old), value_of(static_cast<T>(old + value)));
    return old;
  }
}

template <typename T>
__attribute__((noinline)) void store_slow(volatile T* address, T value, int order, uint64_t pc) {
  if (sizeof(T) == 16 || (order != kRelaxed && order != kRelease)) {
    exchange(address, value, pc);
    return;
  }
  if (options.stamp_max_age == 0) {
    Operation operation(RecordType::kAtomicStore, address, sizeof(T), 1, pc);
    asm volatile("" : : : "memory");
    *address = value;
    asm volatile("" : : : "memory");
    operation.done(false, value_of(value));
    return;
  }
  noise();
  if (Context* const context = is_chosen_atomic(address) ? begin_open(false) : nullptr) {
    put_open(context, capture::other_key(RecordType::kAtomicStore, sizeof(T), pc), address,
             value_of(value));
  }
  asm volatile("" : : : "memory");
  *address = value;
  asm volatile("" : : : "memory");
}

template <typename T>
bool compare_exchange_recorded(volatile T* address, T* expected, T desired, uint64_t pc) {
  if (TSOMON_UNLIKELY(local.lock_code != 0) &&
      fails_in_lock_code(address, expected, pc, [&](T now) { return now != *expected; })) {
    return false;
  }
  Operation operation(RecordType::kAtomicReadModifyWrite, address, sizeof(T), 2, pc);
  const bool equal = compare_exchange(address, expected, desired);
  if (equal) {
    operation.done_locked(value_of(*expected), value_of(desired));
  } else {
    operation.failed(value_of(*expected));
  }
  return equal;
}

}  // namespace tsomon::probe
