// Lost update: lost_update [ROUNDS]
//
// Two threads increment a counter by a load and a store. Both load before either stores: one
// increment is lost. No late commit is needed; it happens on every machine.

#include <cstdio>
#include <thread>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

alignas(128) std::atomic<uint64_t> counter{0};

void increment() {
  TSOMON_UNIT("increment");
  const uint64_t value = counter.load(std::memory_order_relaxed);
  examples::think();
  counter.store(value + 1, std::memory_order_relaxed);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = examples::number_argument(argc, argv, 1, 200);

  examples::Rounds rounds(2);
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    for (uint64_t round = 0; round < count; ++round) {
      rounds.begin_round();
      increment();
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
  const uint64_t increments = 2 * count;
  const uint64_t lost = increments - counter.load();
  std::printf("%llu increments, %llu lost\n", static_cast<unsigned long long>(increments),
              static_cast<unsigned long long>(lost));
  return 0;
}
