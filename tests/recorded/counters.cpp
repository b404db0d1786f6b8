// Two counters without a lock: counters [UNITS]
//
// Two threads add one to each of two plain globals in every unit, so they lose increments, and
// nothing ever drains a store buffer. UNITS are those of both threads; it prints how many
// increments were lost.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

struct alignas(64) Counter {
  uint64_t value = 0;
};
Counter first;
Counter second;
std::atomic<uint32_t> ready{0};

void count(uint32_t thread, uint64_t units) {
  examples::Rounds::take_processor(thread);
  ready.fetch_add(1);
  while (ready.load() < 2) {
    std::this_thread::yield();
  }
  for (uint64_t i = 0; i < units; ++i) {
    TSOMON_UNIT("update");
    ++first.value;
    ++second.value;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t units = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  std::thread one(count, 0, units / 2);
  std::thread other(count, 1, units - units / 2);
  one.join();
  other.join();
  const uint64_t lost = 2 * units - first.value - second.value;
  std::printf("%llu lost\n", static_cast<unsigned long long>(lost));
  return 0;
}
