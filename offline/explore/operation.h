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
// Waiters     A condition variable keeps at most 8 waiting threads. A signal lets any of those go
//             that wait when it comes: which one is not said before one goes. Who goes without a
//             signal (a spurious wake-up, a time-out) leaves the signals to others that waited when
//             they came; one that nobody can take any more is lost.
// Answers     What a call gives that no memory decides (whether a wait wakes by itself, whether
//             time is over) is an operation of its own: it reads one of several answers.
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
  kConditionLeave,    // waits for a signal
  kConditionAbandon,  // goes without one
  kConditionSignal,
  kConditionBroadcast,
  kBarrierArrive,  // a: how many come together
  kBarrierLeave,   // a: waits while the generation is this
  kTimedOut,       // a: an operation; waits until that one would have to wait
  // No cell.
  kFence,
  kBegin,
  kCreate,  // a: the thread
  kJoin,    // a: the thread
  kEnd,
  kCall,  // an operation of a concurrent object is called: only its place in time matters
  // a: the answers that there are, a bit each, 0 always; b: which one. It reads what answers
  // there would be without the options that leave some out.
  kAnswer,
};

// Answers of kAnswer.
inline constexpr uint32_t kWaits = 0;     // until what is waited for is there
inline constexpr uint32_t kSpurious = 1;  // wakes by itself
inline constexpr uint32_t kTimeOver = 2;  // gives up

inline bool has_cell(Op op) { return op < Op::kFence; }
// Reads and perhaps writes in one step.
inline bool is_locked(Op op) { return op > Op::kStore && op < Op::kFence; }
inline bool reads(Op op) { return op != Op::kStore && has_cell(op); }
inline bool is_object(Op op) {
  return op >= Op::kLock && op < Op::kFence && op != Op::kSpinLock && op != Op::kSpinTryLock;
}
// Waits until the thread's store buffer is empty.
inline bool drains(Op op) {
  return op != Op::kLoad && op != Op::kStore && op != Op::kBegin && op != Op::kCall &&
         op != Op::kAnswer;
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

// A condition variable: threads that wait (1 + the number) and signals, a byte each, in the order
// in which they came. Waiters that came before a signal may take it. From the front on there are
// never more signals than waiters, so each can be taken.
class Waiters {
 public:
  explicit Waiters(Value value) {
    for (; value != 0; value >>= 8) {
      entries_[size_++] = static_cast<uint8_t>(value);
    }
  }
  Value value() const {
    Value value = 0;
    for (uint32_t i = size_; i-- > 0;) {
      value = value << 8 | entries_[i];
    }
    return value;
  }
  bool enter(uint32_t thread) {
    if (size_ >= kRoom || size_ - signals(size_) == kMaxWaiters) {
      return false;
    }
    entries_[size_++] = static_cast<uint8_t>(thread + 1);
    return true;
  }
  // False: all that wait have theirs.
  bool signal() {
    if (size_ >= kRoom || 2 * signals(size_) >= size_) {
      return false;
    }
    entries_[size_++] = kSignal;
    return true;
  }
  // Takes the first signal behind the thread: those before have as many waiters as they had.
  bool leave(uint32_t thread) {
    const uint32_t mine = place_of(thread);
    uint32_t signal = mine;
    while (signal < size_ && entries_[signal] != kSignal) {
      ++signal;
    }
    if (signal >= size_) {
      return false;
    }
    remove(signal);
    remove(mine);
    return true;
  }
  void abandon(uint32_t thread) {
    remove(place_of(thread));
    for (uint32_t i = 0; i < size_; ++i) {
      if (2 * signals(i + 1) > i + 1) {
        return remove(i);
      }
    }
  }

 private:
  static constexpr uint8_t kSignal = 0x80;
  static constexpr uint32_t kRoom = 2 * kMaxWaiters;

  uint32_t signals(uint32_t end) const {
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; ++i) {
      count += entries_[i] == kSignal ? 1 : 0;
    }
    return count;
  }
  uint32_t place_of(uint32_t thread) const {
    uint32_t place = 0;
    while (place < size_ && entries_[place] != thread + 1) {
      ++place;
    }
    return place;
  }
  void remove(uint32_t place) {
    for (; place + 1 < size_ && place + 1 < kRoom; ++place) {
      entries_[place] = entries_[place + 1];
    }
    size_ -= place < size_ ? 1 : 0;
  }

  uint8_t entries_[kRoom] = {};
  uint32_t size_ = 0;
};

inline Effect condition(Op op, Value old, uint32_t thread) {
  Waiters waiters(old);
  switch (op) {
    case Op::kConditionEnter:
      return waiters.enter(thread) ? set(waiters.value()) : wait(old);
    case Op::kConditionLeave:
      return waiters.leave(thread) ? set(waiters.value()) : wait(old);
    case Op::kConditionAbandon:
      waiters.abandon(thread);
      return set(waiters.value());
    case Op::kConditionSignal:
      return waiters.signal() ? set(waiters.value()) : keep(old);
    default:
      while (waiters.signal()) {
      }
      return set(waiters.value());
  }
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
    case Op::kConditionAbandon:
    case Op::kConditionSignal:
    case Op::kConditionBroadcast:
      return condition(op, old, thread);
    case Op::kBarrierArrive: {
      const Value count = (old & 0xFFFFFFFF) + 1;
      return set(count >= a ? ((old >> 32) + 1) << 32 : old + 1);
    }
    case Op::kBarrierLeave:
      return old >> 32 == a ? wait(old) : keep(old);
    case Op::kTimedOut: {
      const auto waits = static_cast<Op>(static_cast<uint8_t>(a));
      return waits != Op::kTimedOut && apply_exactly(waits, old, 0, 0, size, thread).enabled
                 ? wait(old)
                 : keep(old);
    }
    case Op::kLoad:
    case Op::kStore:
    case Op::kFence:
    case Op::kBegin:
    case Op::kCreate:
    case Op::kJoin:
    case Op::kEnd:
    case Op::kCall:
    case Op::kAnswer:
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
