// The event: one fixed-size record for everything that decoders produce and checkers read.
//
// Purpose     What a thread did (theory section 1): loads, stores at their *issue*, locked
//             read-modify-writes, fences, locks, thread creation, unit boundaries, branches.
//             When a store commits is not part of an event: no hardware shows it.
// Granularity An access covers the bytes [address, address + size). Two accesses are on the same
//             location when their byte ranges overlap, exactly, without rounding to words. The
//             price is that "same location" is not transitive and that lookups go through
//             LocationTable. Size 0 means a location that has a name and no bytes: `address` is
//             then an opaque id that overlaps with nothing but itself (named variables of text
//             traces; lock objects).
// Time        Every event lies in the closed interval [lo, hi] of one clock that is shared by all
//             threads (TSC cycles in captures, event numbers in text traces without stamps).
// Values      Optional, exact or absent; accesses of at most 8 bytes.
//
// Values, and intervals longer than 32 bits, live beside the events in EventBlock::extras.
// Thread-safety: plain data; concurrent reads are fine.
#pragma once

#include <cstdint>
#include <limits>

namespace tsomon {

enum class EventKind : uint8_t {
  kRead,             // load
  kWrite,            // store, at its issue
  kReadModifyWrite,  // locked: loads and commits in one step, drains the buffer before and after
  kFence,            // mfence or serialising instruction
  kAcquire,          // lock acquired (orders like kReadModifyWrite)
  kRelease,          // lock released (a store; drains nothing)
  kAcquireShared,    // reader lock acquired: like kAcquire, but two readers do not conflict
  kReleaseShared,    // reader lock released
  kFork,             // address = id of the started thread; drains the parent's buffer
  kJoin,             // address = id of the ended thread
  kUnitBegin,        // address = id of the label in Symbols::labels
  kUnitEnd,
  kBranch,    // control flow that depends on the reads before it
  kWait,      // condition wait: splits the enclosing unit; address = condition variable
  kCall,      // operation of a concurrent object invoked; address = text in Symbols::labels
  kReturn,    // ... returned; address = text in Symbols::labels
  kAllocate,  // an object of `size` bytes begins at `address`: everything on its bytes comes later
  kFree,      // the object at `address` ends: everything on its bytes came earlier
  kTry,       // the thread's next acquisition of the lock, or wait, at `address` does not block
  kNotify,    // wakes threads that wait; address = condition variable
  kSend,      // everything before it comes before what follows a later kReceive, on whatever orders
              // the two from outside of the program: a descriptor, say, which `address` stands for
  kReceive,
  kRequest,  // the thread is about to wait until it gets the lock or semaphore, or until the thread
             // has ended, at `address`: what it waits for comes next in the thread, or never
  kPost,     // semaphore at `address`: its count grows by one
  kTake,     // ... its count was above zero and shrinks by one
  kCount,    // ... its count becomes the value written
  kDestroy,  // the lock, barrier or condition variable at `address` ends
};
inline constexpr int kEventKinds = 27;

using ThreadId = uint32_t;  // dense, in order of first appearance

inline constexpr int64_t kTimeMin = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kTimeMax = std::numeric_limits<int64_t>::max();

struct Event {
  static constexpr uint32_t kMaxSize = (1U << 24) - 1;
  static constexpr uint32_t kNoLocation = 0xFFFFFFFFU;
  static constexpr uint32_t kNumericLocation = 0x80000000U;

  uint64_t address = 0;
  int64_t lo = 0;              // start of the interval
  uint32_t span_or_extra = 0;  // hi - lo, or with any flag set the index of this event's extras
  uint32_t location = kNoLocation;  // source location, see Symbols::locations
  ThreadId thread = 0;
  uint32_t size : 24 = 0;  // bytes; 0: a named location
  uint32_t kind_bits : 5 = 0;
  uint32_t has_hi : 1 = 0;           // extras hold hi (first)
  uint32_t has_read_value : 1 = 0;   // extras hold the value read (next)
  uint32_t has_write_value : 1 = 0;  // extras hold the value written (last)

  // Loads and stores by the language's atomic operations have kinds of their own in `kind_bits`.
  static constexpr uint32_t kAtomicKinds = 30;

  EventKind kind() const {
    return static_cast<EventKind>(kind_bits < kAtomicKinds ? kind_bits : kind_bits - kAtomicKinds);
  }
  void set_kind(EventKind kind) { kind_bits = static_cast<uint32_t>(kind) & 31U; }
  // Of a load or store; locked operations are atomic anyway.
  void set_atomic() {
    kind_bits = kind_bits <= static_cast<uint32_t>(EventKind::kWrite) ? kind_bits + kAtomicKinds
                                                                      : uint32_t{kind_bits};
  }
  bool atomic() const {
    return kind_bits >= kAtomicKinds ||
           kind_bits == static_cast<uint32_t>(EventKind::kReadModifyWrite);
  }
  bool has_extras() const { return (has_hi | has_read_value | has_write_value) != 0; }
};
static_assert(sizeof(Event) == 32, "events are stored by the million");

inline constexpr uint32_t kind_mask(EventKind kind) {
  const uint32_t bit = 1U << static_cast<uint32_t>(kind);
  return kind <= EventKind::kWrite ? bit | bit << Event::kAtomicKinds : bit;
}

namespace kinds {
// Locked operations of section 2, `U`: directed to everything that follows.
inline constexpr uint32_t kLocked = kind_mask(EventKind::kReadModifyWrite) |
                                    kind_mask(EventKind::kAcquire) |
                                    kind_mask(EventKind::kAcquireShared);
// What one thread hands over to others, on no location that can conflict (tso/model/hand_over.h).
inline constexpr uint32_t kHandOvers = kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake) |
                                       kind_mask(EventKind::kSend) | kind_mask(EventKind::kReceive);
// Passes only with an empty store buffer.
inline constexpr uint32_t kDrains = kLocked | kind_mask(EventKind::kFence) |
                                    kind_mask(EventKind::kFork) |
                                    kind_mask(EventKind::kReleaseShared) |
                                    kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake);
inline constexpr uint32_t kAcquisitions =
    kind_mask(EventKind::kAcquire) | kind_mask(EventKind::kAcquireShared);
// Two of them never conflict.
inline constexpr uint32_t kOnlyReads = kind_mask(EventKind::kRead) |
                                       kind_mask(EventKind::kAcquireShared) |
                                       kind_mask(EventKind::kReleaseShared);
// A store.
inline constexpr uint32_t kStores = kind_mask(EventKind::kWrite) | kind_mask(EventKind::kRelease);
// Goes through the store buffer: what is sent is there when the stores before it are.
inline constexpr uint32_t kBuffered = kStores | kind_mask(EventKind::kSend);
// Like a load, comes before all that follows it.
inline constexpr uint32_t kLoadLike =
    kind_mask(EventKind::kRead) | kind_mask(EventKind::kJoin) | kind_mask(EventKind::kReceive);
inline constexpr uint32_t kLocks = kind_mask(EventKind::kAcquire) | kind_mask(EventKind::kRelease) |
                                   kind_mask(EventKind::kAcquireShared) |
                                   kind_mask(EventKind::kReleaseShared);
// Has a location that can conflict.
inline constexpr uint32_t kAccesses = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite) |
                                      kind_mask(EventKind::kReadModifyWrite) | kLocks;
// A node of the event graph: everything with an effect on order.
inline constexpr uint32_t kNodes = kAccesses | kDrains | kHandOvers | kind_mask(EventKind::kJoin);
}  // namespace kinds

inline bool is(const Event& event, uint32_t mask) { return ((1U << event.kind_bits) & mask) != 0; }

}  // namespace tsomon
