// Rounds: two threads start every round at the same moment, so that their accesses meet.
//
// A round begins with a locked operation of every thread. It drains the store buffers, so nothing
// of one round reaches into the next, and what has to be analysed together stays small.
// The waiting itself (reading one flag over and over) is hidden from a recording: it would be the
// bulk of it and says nothing. Hiding it is sound: what is not recorded can only leave the
// order of more events open, and the locked operations and time stamps around it carry the order.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include <sched.h>
#include <x86intrin.h>

namespace examples {

// Accesses that no instrumentation sees. The store is locked, so that it takes effect at once.
inline uint64_t hidden_load(const uint64_t& from) {
  uint64_t value = 0;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(from) : "memory");
  return value;
}
inline void hidden_store(uint64_t& to, uint64_t value) {
  asm volatile("xchgq %1, %0" : "+m"(to), "+r"(value) : : "memory");
}

class Rounds {
 public:
  explicit Rounds(uint64_t threads) : threads_(threads) {}

  // Returns at the same time stamp in every thread (within some ten cycles).
  void begin_round() {
    const uint64_t arrival = arrivals_.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t round = arrival / threads_ + 1;
    if (arrival + 1 == round * threads_) {
      hidden_store(start_, __rdtsc() + kLead);
      hidden_store(released_, round);
    }
    for (uint64_t spins = 1; hidden_load(released_) < round; ++spins) {
      _mm_pause();
      if (spins % kSpinsBeforeYield == 0) {
        sched_yield();
      }
    }
    const uint64_t start = hidden_load(start_);
    while (__rdtsc() < start) {
    }
  }

 private:
  static constexpr uint64_t kLead = 2000;  // cycles, enough for every thread to see the release
  static constexpr uint64_t kSpinsBeforeYield = 5000;

  const uint64_t threads_;
  alignas(128) std::atomic<uint64_t> arrivals_{0};
  alignas(128) uint64_t released_ = 0;
  uint64_t start_ = 0;
};

// A table of results, larger than the caches. Stores to it miss, and as the store buffer is first
// in, first out, the next store of the thread commits late: what happens in any program that
// writes out a result and goes on to the next task.
class Results {
 public:
  Results() : table_(new uint64_t[kEntries]()) {}

  void write(uint64_t round) {
    for (uint64_t i = 0; i < kStores; ++i) {
      position_ = (position_ + kStride) % kEntries;
      table_[position_] = round;
    }
  }

 private:
  static constexpr uint64_t kStores = 24;
  static constexpr uint64_t kEntries = (64U << 20) / sizeof(uint64_t);
  static constexpr uint64_t kStride = (7 * 4096 + 64) / sizeof(uint64_t);

  std::unique_ptr<uint64_t[]> table_;
  uint64_t position_ = 0;
};

// Some hundred cycles of work on nothing shared.
inline void think(int amount = 10) {
  for (int i = 0; i < amount; ++i) {
    _mm_pause();
  }
}

// The number in argument `index`, or `otherwise` when there is none.
inline uint64_t number_argument(int argc, char** argv, int index, uint64_t otherwise) {
  return index < argc ? std::strtoull(argv[index], nullptr, 10) : otherwise;
}

}  // namespace examples
