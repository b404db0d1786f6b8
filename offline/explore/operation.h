// What one step of an explored thread does to one cell of memory.
//
// Purpose     The controlled runtime performs operations, the exploration asks what they would do
//             to other values: whether a lock could be taken, a compare-exchange would succeed.
//             Both use apply(), so they cannot disagree.
// Cells       Bytes of the program's memory, at most 16, or an object of synchronisation, whose
//             value the runtime keeps: a mutex, say, is 0 or 1 + the number of its owner.
// Blocking    A lock is enabledness: while an operation is not enabled, its thread waits.
// Silent      A locked operation that writes the value that is there already is a load that
//             drains: nobody can tell the difference. It makes `while (flag.exchange(1))` a loop
//             without effect.
// Waiters     A condition variable keeps at most 8 waiting threads, in their order; a signal wakes
//             the one that has waited longest. Spurious wake-ups do not happen.
// Thread-safety: pure functions. The runtime of explored programs uses this header: no allocation,
// no exceptions.
#pragma once

#include <cstdint>

namespace tsomon::explore {

using Value = unsigned __int128;

inline constexpr uint32_t kMaxThreads = 63;
inline constexpr uint32_t kMaxWaiters = 8;

enum class Op : uint8_t {
  kLoad,
  kStore,  // waits in the store buffer under TSO
  // Locked: one step with an empty store buffer.
  kExchange,         // a
  kAdd,              // + a
  kAnd,              // & a
  kOr,               // | a
  kXor,              // ^ a
  kNand,             // ~(old & a)
  kNegate,           // two's complement
  kCompareExchange,  // stores b if old = a
  // Objects of synchronisation.
  kLock,
  kTryLock,
  kUnlock,
  kReadLock,
  kTryReadLock,
  kWriteLock,
  kTryWriteLock,
  kReadWriteUnlock,
  kSpinLock,     // the lock is in memory: 1 is free
  kSpinTryLock,  // likewise
  kSemaphoreWait,
  kSemaphoreTryWait,
  kSemaphorePost,
  kOnceEnter,  // 0 -> 1, waits while 1
  kOnceLeave,  // a
  kConditionEnter,
  kConditionLeave,
  kConditionSignal,
  kConditionBroadcast,
  kBarrierArrive,  // a: how many come together
  kBarrierLeave,   // a: waits while the generation is this
  // No cell.
  kFence,
  kBegin,
  kCreate,  // a: the thread
  kJoin,    // a: the thread
  kEnd,
  kCall,  // an operation of a concurrent object is called: only its place in time matters
};

inline bool has_cell(Op op) { return op < Op::kFence; }
// Reads and perhaps writes in one step.
inline bool is_locked(Op op) { return op > Op::kStore && op < Op::kFence; }
inline bool reads(Op op) { return op != Op::kStore && has_cell(op); }
inline bool is_object(Op op) {
  return op >= Op::kLock && op < Op::kFence && op != Op::kSpinLock && op != Op::kSpinTryLock;
}
// Waits until the thread's store buffer is empty.
inline bool drains(Op op) {
  return op != Op::kLoad && op != Op::kStore && op != Op::kBegin && op != Op::kCall;
}

struct Effect {
  bool enabled = true;
  bool writes = false;
  Value value = 0;  // what the cell holds afterwards
};

inline Value low_bytes(Value value, uint32_t size) {
  return size >= 16 ? value : value & ((Value{1} << (8 * size)) - 1);
}

namespace operation_internal {

inline Effect set(Value value) { return {true, true, value}; }
inline Effect keep(Value old) { return {true, false, old}; }
inline Effect wait(Value old) { return {false, false, old}; }
inline Effect take(bool free, bool waits, Value old, Value held) {
  return free ? set(held) : waits ? wait(old) : keep(old);
}

// A condition variable: eight bytes of waiting threads, the oldest lowest, and a bit for every
// thread that was woken and has not left.
inline Effect condition(Op op, Value old, uint32_t thread) {
  const auto queue = static_cast<uint64_t>(old);
  const auto woken = static_cast<uint64_t>(old >> 64);
  const auto made = [](uint64_t waiting, uint64_t awake) {
    return set((static_cast<Value>(awake) << 64) | waiting);
  };
  const uint64_t mine = uint64_t{1} << thread;
  if (op == Op::kConditionEnter) {
    uint32_t place = 0;
    while (place < 64 && ((queue >> place) & 0xFF) != 0) {
      place += 8;
    }
    return place == 64 ? wait(old) : made(queue | (uint64_t{thread} + 1) << place, woken);
  }
  if (op == Op::kConditionLeave) {
    return (woken & mine) != 0 ? made(queue, woken & ~mine) : wait(old);
  }
  if (queue == 0) {
    return keep(old);
  }
  if (op == Op::kConditionSignal) {
    return made(queue >> 8, woken | uint64_t{1} << ((queue & 0xFF) - 1));
  }
  uint64_t all = woken;
  for (uint32_t place = 0; place < 64; place += 8) {
    if (const uint64_t waiting = (queue >> place) & 0xFF; waiting != 0) {
      all |= uint64_t{1} << (waiting - 1);
    }
  }
  return made(0, all);
}

}  // namespace operation_internal

// The effect of a locked operation by `thread` on a cell of `size` bytes that holds `old`.
inline Effect apply_exactly(Op op, Value old, Value a, Value b, uint32_t size, uint32_t thread) {
  using namespace operation_internal;
  const Value mine = Value{thread} + 1;
  const auto store = [size](Value value) { return set(low_bytes(value, size)); };
  constexpr Value kReader = 0x100;
  switch (op) {
    case Op::kExchange:
      return store(a);
    case Op::kAdd:
      return store(old + a);
    case Op::kAnd:
      return store(old & a);
    case Op::kOr:
      return store(old | a);
    case Op::kXor:
      return store(old ^ a);
    case Op::kNand:
      return store(~(old & a));
    case Op::kNegate:
      return store(0 - old);
    case Op::kCompareExchange:
      return old == low_bytes(a, size) ? store(b) : keep(old);
    case Op::kLock:
    case Op::kTryLock:
      return take(old == 0, op == Op::kLock, old, mine);
    case Op::kUnlock:
      return set(0);
    case Op::kReadLock:
    case Op::kTryReadLock:
      return take((old & 0xFF) == 0, op == Op::kReadLock, old, old + kReader);
    case Op::kWriteLock:
    case Op::kTryWriteLock:
      return take(old == 0, op == Op::kWriteLock, old, mine);
    case Op::kReadWriteUnlock:
      return set((old & 0xFF) != 0 ? old & ~Value{0xFF} : old >= kReader ? old - kReader : old);
    case Op::kSpinLock:
    case Op::kSpinTryLock:
      return take(old == 1, op == Op::kSpinLock, old, 0);
    case Op::kSemaphoreWait:
    case Op::kSemaphoreTryWait:
      return take(old != 0, op == Op::kSemaphoreWait, old, old - 1);
    case Op::kSemaphorePost:
      return set(old + 1);
    case Op::kOnceEnter:
      return old == 0 ? set(1) : old == 1 ? wait(old) : keep(old);
    case Op::kOnceLeave:
      return set(a);
    case Op::kConditionEnter:
    case Op::kConditionLeave:
    case Op::kConditionSignal:
    case Op::kConditionBroadcast:
      return condition(op, old, thread);
    case Op::kBarrierArrive: {
      const Value count = (old & 0xFFFFFFFF) + 1;
      return set(count >= a ? ((old >> 32) + 1) << 32 : old + 1);
    }
    case Op::kBarrierLeave:
      return old >> 32 == a ? wait(old) : keep(old);
    case Op::kLoad:
    case Op::kStore:
    case Op::kFence:
    case Op::kBegin:
    case Op::kCreate:
    case Op::kJoin:
    case Op::kEnd:
    case Op::kCall:
      break;
  }
  return keep(old);
}

inline Effect apply(Op op, Value old, Value a, Value b, uint32_t size, uint32_t thread) {
  Effect effect = apply_exactly(op, old, a, b, size, thread);
  effect.writes = effect.writes && effect.value != old;
  return effect;
}

}  // namespace tsomon::explore
