// Store buffering, the litmus test SB: store_buffering [plain|fenced] [ROUNDS]
//
// Each thread stores to its own location, then reads the other's. Both reading the old value is
// impossible if stores take effect at once; on x86 it happens while both stores sit in their
// buffers. A fence between store and load forbids it.

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "examples/rounds.h"

namespace {

alignas(128) std::atomic<uint64_t> x{0};
alignas(128) std::atomic<uint64_t> y{0};

uint64_t store_then_load(std::atomic<uint64_t>& mine, const std::atomic<uint64_t>& other,
                         uint64_t value, bool fenced) {
  mine.store(value, std::memory_order_relaxed);
  if (fenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  return other.load(std::memory_order_relaxed);
}

}  // namespace

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  const uint64_t count = examples::number_argument(argc, argv, 2, 300);

  examples::Rounds rounds(2);
  std::vector<uint64_t> seen[2] = {std::vector<uint64_t>(count), std::vector<uint64_t>(count)};
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    examples::Results results;
    for (uint64_t round = 0; round < count; ++round) {
      results.flush();
      rounds.begin_round(examples::Rounds::stagger(round, thread));
      results.write(round);
      seen[thread][round] = thread == 0 ? store_then_load(x, y, round + 1, fenced)
                                        : store_then_load(y, x, round + 1, fenced);
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();

  uint64_t both_old = 0;
  for (uint64_t round = 0; round < count; ++round) {
    both_old += seen[0][round] <= round && seen[1][round] <= round ? 1 : 0;
  }
  std::printf("%llu rounds, both threads read the old value in %llu\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(both_old));
  return 0;
}
