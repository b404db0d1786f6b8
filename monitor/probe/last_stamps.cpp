#include "monitor/probe/last_stamps.h"

#include <atomic>

namespace tsomon::probe {
namespace {

constexpr uint32_t kSlotBits = 11;
constexpr uint32_t kSharedBits = 8;

struct alignas(64) Slot {
  std::atomic<uint64_t> lock{0};  // that it belongs to; 0: to nobody yet
  std::atomic<uint64_t> stamp{0};
};
Slot slots[1U << kSlotBits];
// Of locks that have no slot.
Slot shared_slots[1U << kSharedBits];
std::atomic<uint64_t> backwards{0};

uint64_t hash(uint64_t lock) { return (lock >> 3) * 0x9E3779B97F4A7C15; }

// The lock's slot; true in `own` when it is the lock's alone.
Slot& slot_of(uint64_t lock, bool* own) {
  Slot& slot = slots[hash(lock) >> (64 - kSlotBits)];
  uint64_t owner = slot.lock.load(std::memory_order_relaxed);
  if (owner == 0 && slot.lock.compare_exchange_strong(owner, lock, std::memory_order_relaxed)) {
    owner = lock;
  }
  *own = owner == lock;
  return *own ? slot : shared_slots[(hash(lock) >> 8) % (1U << kSharedBits)];
}

void raise(std::atomic<uint64_t>* place, uint64_t value) {
  uint64_t before = place->load(std::memory_order_relaxed);
  while (before < value && !place->compare_exchange_weak(before, value)) {
  }
}

}  // namespace

uint64_t last_stamp(uint64_t lock) {
  bool own = false;
  return slot_of(lock, &own).stamp.load(std::memory_order_relaxed);
}

void leave_stamp(uint64_t lock, uint64_t stamp, bool shared) {
  bool own = false;
  Slot& slot = slot_of(lock, &own);
  if (own && !shared) {
    slot.stamp.store(stamp, std::memory_order_relaxed);
  } else {
    raise(&slot.stamp, stamp);
  }
}

void note_backwards(uint64_t cycles) { raise(&backwards, cycles); }
uint64_t most_backwards() { return backwards.load(std::memory_order_relaxed); }

}  // namespace tsomon::probe
