// A record around an operation that the runtime performs or calls: begun, with its first stamp,
// before the operation and completed after it.
#pragma once

#include "monitor/probe/runtime.h"

namespace tsomon::probe {

// Cycles; what happens between two locked operations that follow one another closely is nothing.
inline constexpr uint64_t kLockedShare = 400;

// Publishes the record that ends at `next`; returns its first stamp, which the caller stores.
inline uint64_t start(uint64_t* next, uint64_t recent) {
  if (stamped_within(recent)) {
    publish(next);
    return local.stamp;
  }
  const uint64_t now = stamp();
  publish_stamped(next, now);
  return now;
}

// A record around the access. `values`: words for values after the two stamps.
class Record {
 public:
  Record(RecordType type, const volatile void* address, uint32_t size, uint32_t values, uint64_t pc)
      : address_(reinterpret_cast<uint64_t>(address)), size_(size), pc_(pc) {
    at_ = room(4 + 2);
    if (at_ == nullptr) {
      return;
    }
    const uint32_t known = size <= 8 ? values : 0;
    at_[0] = capture::make_a(type, address_, 2 + known);
    at_[1] = capture::make_b(pc, size, capture::kSeparates | capture::kUnfinished);
    at_[3] = 0;
    at_[4] = 0;
    at_[5] = 0;
    const bool mov = type == RecordType::kAtomicLoad || type == RecordType::kAtomicStore;
    at_[2] = start(at_ + 4 + known, mov ? options.share : kLockedShare);
  }
  // `locked`: the access was a locked instruction or mfence.
  void done(bool locked, uint64_t first = 0, uint64_t second = 0) {
    if (at_ == nullptr) {
      return;
    }
    const uint64_t now = locked ? stamp_after_locked() : stamp();
    const uint32_t words = capture::aux_of(at_[0]);
    at_[3] = now;
    if (words > 2) {
      at_[4] = first;
    }
    if (words > 3) {
      at_[5] = second;
    }
    asm volatile("" : : : "memory");
    at_[1] = capture::make_b(pc_, size_, capture::kSeparates);
    publish_stamped(at_ + 2 + words, now);
  }
  // Without a stamp: the thread's next one ends the interval.
  void done_openly(uint64_t value) {
    if (at_ == nullptr) {
      return;
    }
    at_[4] = value;
    asm volatile("" : : : "memory");
    at_[1] = capture::make_b(pc_, size_, capture::kSeparates | capture::kOpenEnd);
  }
  // It turned out to have been a load without effect; the value is not known.
  void was_load() {
    if (at_ != nullptr) {
      at_[0] = capture::make_a(RecordType::kAtomicLoad, address_, capture::aux_of(at_[0]));
      done(false);
    }
  }
  // A compare-exchange that turned out to fail keeps the length of its record.
  void failed(uint64_t seen) {
    if (at_ == nullptr) {
      return;
    }
    at_[0] = capture::make_a(RecordType::kFailedCompareExchange, address_, capture::aux_of(at_[0]));
    done(true, seen, seen);
  }

 private:
  uint64_t address_;
  uint32_t size_;
  uint64_t pc_;
  uint64_t* at_ = nullptr;
};

}  // namespace tsomon::probe
