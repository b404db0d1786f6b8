// Rounds: two threads start every round at the same moment, so that their accesses meet.
//
// A round begins with locked operations of every thread. They drain the store buffers, so nothing
// of one round reaches into the next, and what has to be analysed together stays small.
// The waiting itself (reading one flag over and over) is hidden from a recording: it would be the
// bulk of it and says nothing. Hiding it is sound: what is not recorded can only leave the
// order of more events open, and the locked operations and time stamps around it carry the order.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <sched.h>
#include <x86intrin.h>

namespace examples {

// Accesses that no instrumentation sees.
inline uint64_t hidden_load(const uint64_t& from) {
  uint64_t value = 0;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(from) : "memory");
  return value;
}
inline void hidden_store(uint64_t& to, uint64_t value) {
  asm volatile("movq %1, %0" : "=m"(to) : "r"(value) : "memory");
}
// A locked store, which takes effect at once.
inline void hidden_exchange(uint64_t& to, uint64_t value) {
  asm volatile("xchgq %1, %0" : "+m"(to), "+r"(value) : : "memory");
}

class Rounds {
 public:
  explicit Rounds(uint64_t threads) : threads_(threads) {}

  // Binds the calling thread to a processor of its own, the `thread`th of those that it may use,
  // where there are enough.
  static void take_processor(uint32_t thread) {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) {
      return;
    }
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(processor, &usable) && thread-- == 0) {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(processor, &own);
        sched_setaffinity(0, sizeof own, &own);
        return;
      }
    }
  }

  // Returns at the same time stamp in every thread (within some ten cycles), or `delay` cycles
  // later.
  void begin_round(uint64_t delay = 0) {
    const uint64_t arrival = progress_.fetch_add(1, std::memory_order_seq_cst) % kDeparture;
    const uint64_t round = arrival / threads_ + 1;
    if (arrival + 1 == round * threads_) {
      hidden_store(start_, __rdtsc() + kLead);
      hidden_exchange(released_, round);
    }
    for (uint64_t spins = 1; hidden_load(released_) < round; ++spins) {
      _mm_pause();
      if (spins % kSpinsBeforeYield == 0) {
        sched_yield();
      }
    }
    // Stamped after every arrival, and a change of the same variable: what follows is certainly
    // later than the round before, in whatever order the threads might have run. That much later
    // that it shows where the processors' counters agree only within some hundred cycles.
    const uint64_t start = hidden_load(start_);
    wait_until(start - kLead + kApart);
    progress_.fetch_add(kDeparture, std::memory_order_seq_cst);
    wait_until(start + delay);
  }

  // How two accesses have to be timed to meet depends on the machine and on what else it does:
  // the rounds try delays of one thread, then of the other.
  static uint64_t stagger(uint64_t round, uint32_t thread) {
    return thread == round / 36 % 2 ? round / 6 % 6 * 50 : 0;
  }

 private:
  static void wait_until(uint64_t stamp) {
    while (__rdtsc() < stamp) {
    }
  }

  static constexpr uint64_t kLead = 8000;   // cycles, enough for every thread to see the release
  static constexpr uint64_t kApart = 3000;  // from the last arrival to the first departure
  static constexpr uint64_t kSpinsBeforeYield = 5000;
  static constexpr uint64_t kDeparture = uint64_t{1} << 32;

  const uint64_t threads_;
  alignas(128) std::atomic<uint64_t> progress_{0};  // arrivals, and departures x kDeparture
  alignas(128) uint64_t released_ = 0;
  uint64_t start_ = 0;
};

// Results that a device reads: written with ordinary stores, then flushed from the caches to
// memory. The first stores after a flush miss the caches, and as the store buffer is first in,
// first out, the next store of the thread commits late. That happens in every program that writes
// something out and goes on to the next task; here it happens in every round.
class Results {
 public:
  Results() { flush(); }

  void write(uint64_t round) {
    const uint64_t count = 1ULL << round % kSizes;
    for (uint64_t i = 0; i < count; ++i) {
      hidden_store(lines_[i].result, round);
    }
  }

  void flush() {
    for (Line& line : lines_) {
      _mm_clflush(&line);
    }
    _mm_mfence();
  }

 private:
  static constexpr int kSizes = 6;  // 1, 2, 4, 8, 16, 32 lines
  struct alignas(512) Line {
    uint64_t result = 0;
  };
  Line lines_[1 << (kSizes - 1)];
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
