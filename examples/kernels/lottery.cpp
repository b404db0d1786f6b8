// A lottery: a number is drawn into a field that all threads share, then written down. Both steps
// are under the lock, but not both together: a thread writes down what another one has drawn.

#include <cstdlib>
#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

class Lottery {
 public:
  explicit Lottery(bool buggy) : buggy_(buggy) {}

  uint64_t draw() {
    TSOMON_UNIT("draw;lottery");
    std::unique_lock<std::mutex> lock(mutex_);
    number_ = number_ * 6364136223846793005ULL + 1442695040888963407ULL;
    kernels::let_go(buggy_, lock);
    return number_;
  }

 private:
  const bool buggy_;
  std::mutex mutex_;
  uint64_t number_ = 1;
};

// What goes wrong is counted by code that is not recorded, like the rests: sorting all numbers
// would be most of what the program does.
__attribute__((no_sanitize_thread)) int compare(const void* a, const void* b) {
  const uint64_t left = *static_cast<const uint64_t*>(a);
  const uint64_t right = *static_cast<const uint64_t*>(b);
  return left < right ? -1 : left > right ? 1 : 0;
}
__attribute__((no_sanitize_thread)) uint64_t count_repeated(uint64_t* numbers, uint64_t count) {
  std::qsort(numbers, count, sizeof *numbers, compare);
  uint64_t repeated = 0;
  for (uint64_t i = 1; i < count; ++i) {
    repeated += numbers[i] == numbers[i - 1] ? 1 : 0;
  }
  return repeated;
}

uint64_t run(const kernels::Arguments& arguments) {
  const auto lottery_on_heap = std::make_unique<Lottery>(arguments.buggy);
  Lottery& lottery = *lottery_on_heap;
  TSOMON_ATOMIC_SET("lottery", &lottery, sizeof lottery);
  std::vector<uint64_t> written[2];
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    written[thread].reserve(arguments.rounds);
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      written[thread].push_back(lottery.draw());
    }
  });
  std::vector<uint64_t> all = written[0];
  all.insert(all.end(), written[1].begin(), written[1].end());
  return count_repeated(all.data(), all.size());
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "numbers drawn twice", run);
}
