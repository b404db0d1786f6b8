// Message passing, the litmus test MP: message_passing [ROUNDS]
//
// One thread stores data and then a flag; the other reads the flag and then the data. Store buffers
// are first in, first out, so on x86 a reader that sees the flag sees the data: robust, without
// a fence.

#include <cstdio>
#include <thread>

#include "examples/rounds.h"

namespace {

alignas(128) std::atomic<uint64_t> data{0};
alignas(128) std::atomic<uint64_t> flag{0};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t count = examples::number_argument(argc, argv, 1, 200);

  examples::Rounds rounds(2);
  uint64_t seen = 0;
  uint64_t stale = 0;
  std::thread writer([&] {
    examples::Rounds::take_processor(1);
    examples::Results results;
    for (uint64_t round = 1; round <= count; ++round) {
      results.flush();
      rounds.begin_round();
      results.write(round);
      data.store(round, std::memory_order_relaxed);
      flag.store(round, std::memory_order_release);
    }
  });
  examples::Rounds::take_processor(0);
  for (uint64_t round = 1; round <= count; ++round) {
    rounds.begin_round();
    examples::think(25);
    const uint64_t sent = flag.load(std::memory_order_acquire);
    const uint64_t message = data.load(std::memory_order_relaxed);
    seen += sent == round ? 1 : 0;
    stale += message < sent ? 1 : 0;
  }
  writer.join();
  std::printf("%llu rounds, flag seen in %llu, data older than the flag in %llu\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(seen),
              static_cast<unsigned long long>(stale));
  return 0;
}
