// Accesses that are known in advance, on one thread: sequence STEPS [late [beside]]
//
// Built twice: with the compile-time probe, and plain. Prints where its data lies. With "late" it
// leaves time to attach first, with "beside" a second thread waits meanwhile.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include "tsomon.h"

constexpr auto kRelaxed = std::memory_order_relaxed;

struct Data {
  std::atomic<uint64_t> eight[8];
  std::atomic<uint32_t> four[8];
  std::atomic<uint16_t> two[8];
  std::atomic<uint8_t> one[8];
};
alignas(64) Data data;

__attribute__((noinline)) uint64_t step(uint64_t random) {
  TSOMON_UNIT("step");  // the probe records from the first unit on; nothing in the plain build
  const auto at = static_cast<size_t>(random >> 8 & 7);
  uint64_t sum = 0;
  switch (random % 10) {
    case 0:
      data.eight[at].store(random, kRelaxed);
      return 0;
    case 1:
      data.four[at].store(static_cast<uint32_t>(random), kRelaxed);
      return 0;
    case 2:
      data.two[at].store(static_cast<uint16_t>(random), kRelaxed);
      return 0;
    case 3:
      data.one[at].store(static_cast<uint8_t>(random), kRelaxed);
      return 0;
    case 4:
      sum = data.eight[at].load(kRelaxed);
      return sum + data.one[at].load(kRelaxed);
    case 5:
      sum = data.four[at].load(kRelaxed);
      return sum + data.two[7 - at].load(kRelaxed);
    case 6:
      return data.eight[at].fetch_add(random, kRelaxed);
    case 7:
      return data.four[at].exchange(static_cast<uint32_t>(random), kRelaxed);
    case 8:
      data.eight[at].store(data.eight[7 - at].load(kRelaxed) + 1, kRelaxed);
      return 0;
    default:
      return data.two[at].fetch_sub(1, kRelaxed);
  }
}

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  std::printf("%p %zu\n", static_cast<void*>(&data), sizeof data);
  std::fflush(stdout);
  std::thread beside;
  if (argc > 3) {
    beside = std::thread([] { usleep(3'000'000); });
  }
  if (argc > 2) {
    usleep(1'500'000);
  }
  uint64_t random = 12345;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < steps; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    sum += step(random >> 20);
  }
  if (beside.joinable()) {
    beside.join();
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
