// A bounded single-producer single-consumer queue, two threads. Prints the seconds of the work.
#include <atomic>

#include <sched.h>

#include "tests/bench/probe/two_threads.h"

namespace {
constexpr uint64_t kCapacity = 1024;
alignas(128) std::atomic<uint64_t> head{0};
alignas(128) std::atomic<uint64_t> tail{0};
uint64_t slots[kCapacity];
}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = 100000 * scale(argc, argv);
  uint64_t sum = 0;
  run_two_threads([&](uint64_t thread) {
    for (uint64_t i = 0; i < count; ++i) {
      if (thread == 0) {
        while (i - head.load(std::memory_order_acquire) == kCapacity) {
          sched_yield();
        }
        slots[i % kCapacity] = i;
        tail.store(i + 1, std::memory_order_release);
      } else {
        while (tail.load(std::memory_order_acquire) == i) {
          sched_yield();
        }
        sum += slots[i % kCapacity];
        head.store(i + 1, std::memory_order_release);
      }
    }
  });
  return sum == count * (count - 1) / 2 ? 0 : 1;
}
