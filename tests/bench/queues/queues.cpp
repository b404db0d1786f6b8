// Queues between threads that spin without bound, without units: queues spsc|mpmc|moodycamel
// [COUNT]
//
//   spsc        a ring of one producer and one consumer: loads and stores of two indices
//   mpmc        a bounded queue of two producers and two consumers: a compare-exchange for each
//               operation, a sequence number in each slot (D. Vyukov)
//   moodycamel  two and two with Debian's libconcurrentqueue-dev
//
// As many test programs of such queues do, it only adds up what arrives.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <concurrentqueue/concurrentqueue.h>

namespace {

class Ring {
 public:
  bool try_put(uint64_t value) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) {
      return false;
    }
    slots_[tail % kCapacity] = value;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool try_take(uint64_t& value) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (tail_.load(std::memory_order_acquire) == head) {
      return false;
    }
    value = slots_[head % kCapacity];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  static constexpr uint64_t kCapacity = 1024;
  alignas(128) std::atomic<uint64_t> head_{0};
  alignas(128) std::atomic<uint64_t> tail_{0};
  uint64_t slots_[kCapacity] = {};
};

class Bounded {
 public:
  Bounded() : slots_(kCapacity) {
    for (uint64_t i = 0; i < kCapacity; ++i) {
      slots_[i].sequence.store(i, std::memory_order_relaxed);
    }
  }
  bool try_put(uint64_t value) {
    uint64_t place = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[place % kCapacity];
      const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
      if (sequence == place) {
        if (tail_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
          slot.value = value;
          slot.sequence.store(place + 1, std::memory_order_release);
          return true;
        }
      } else if (sequence < place) {
        return false;
      } else {
        place = tail_.load(std::memory_order_relaxed);
      }
    }
  }
  bool try_take(uint64_t& value) {
    uint64_t place = head_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[place % kCapacity];
      const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
      if (sequence == place + 1) {
        if (head_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
          value = slot.value;
          slot.sequence.store(place + kCapacity, std::memory_order_release);
          return true;
        }
      } else if (sequence < place + 1) {
        return false;
      } else {
        place = head_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  static constexpr uint64_t kCapacity = 1024;
  struct Slot {
    std::atomic<uint64_t> sequence{0};
    uint64_t value = 0;
  };
  std::vector<Slot> slots_;
  alignas(128) std::atomic<uint64_t> head_{0};
  alignas(128) std::atomic<uint64_t> tail_{0};
};

class Moodycamel {
 public:
  bool try_put(uint64_t value) { return queue_.enqueue(value); }
  bool try_take(uint64_t& value) { return queue_.try_dequeue(value); }

 private:
  moodycamel::ConcurrentQueue<uint64_t> queue_;
};

template <typename Queue>
int run(uint64_t pairs, uint64_t count) {
  Queue queue;
  std::vector<uint64_t> sums(pairs, 0);
  std::vector<std::thread> threads;
  for (uint64_t pair = 0; pair < pairs; ++pair) {
    threads.emplace_back([&queue, pairs, count] {
      for (uint64_t i = 0; i < count / pairs; ++i) {
        while (!queue.try_put(i)) {
        }
      }
    });
    threads.emplace_back([&queue, &sums, pair, pairs, count] {
      for (uint64_t i = 0; i < count / pairs; ++i) {
        uint64_t value = 0;
        while (!queue.try_take(value)) {
        }
        sums[pair] += value;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  uint64_t sum = 0;
  for (const uint64_t part : sums) {
    sum += part;
  }
  const uint64_t each = count / pairs;
  std::printf("%llu hand-overs\n", static_cast<unsigned long long>(each * pairs));
  return sum == pairs * (each * (each - 1) / 2) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const which = argc > 1 ? argv[1] : "spsc";
  const uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 10'000'000;
  if (std::strcmp(which, "mpmc") == 0) {
    return run<Bounded>(2, count);
  }
  if (std::strcmp(which, "moodycamel") == 0) {
    return run<Moodycamel>(2, count);
  }
  return run<Ring>(1, count);
}
