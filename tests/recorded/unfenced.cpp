// Units without a fence: unfenced [UNITS] [THREADS]
//
// Threads load and store shared locations in units, with nothing that drains a store buffer: every
// unit may have committed long after its end, so nearly all orders are open, and judging them takes
// very long.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tsomon.h"

namespace {

constexpr uint32_t kLocations = 24;

struct alignas(64) Location {
  std::atomic<uint64_t> value{0};
};
Location shared[kLocations];

void work(uint32_t seed, uint64_t units) {
  uint32_t state = 2 * seed + 1;
  const auto pick = [&state] {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % kLocations;
  };
  for (uint64_t i = 0; i < units; ++i) {
    TSOMON_UNIT("mix");
    const uint64_t seen = shared[pick()].value.load(std::memory_order_relaxed) +
                          shared[pick()].value.load(std::memory_order_relaxed);
    shared[pick()].value.store(seen + i, std::memory_order_relaxed);
    shared[pick()].value.store(seen, std::memory_order_relaxed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t units = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 2000;
  const uint32_t threads = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 3;
  std::vector<std::thread> all;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    all.emplace_back(work, thread, units);
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  return 0;
}
