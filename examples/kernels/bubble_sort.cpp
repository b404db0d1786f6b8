// Two threads sort one array with exchanges of neighbours, one upwards, the other downwards.
// Comparing is under the lock and so is exchanging, but not both together: elements are lost.

#include <algorithm>
#include <mutex>
#include <numeric>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kElements = 8;

class Sorter {
 public:
  explicit Sorter(bool buggy) : buggy_(buggy) { std::iota(elements_, elements_ + kElements, 0); }

  void put_in_order(uint32_t i, bool upwards) {
    TSOMON_UNIT("put in order;elements");
    std::unique_lock<std::mutex> lock(mutex_);
    const uint32_t left = elements_[i];
    const uint32_t right = elements_[i + 1];
    if ((left < right) != upwards) {
      kernels::let_go(buggy_, lock);
      elements_[i] = right;
      elements_[i + 1] = left;
    }
  }

  uint64_t missing() const {
    uint64_t count = 0;
    for (uint32_t value = 0; value < kElements; ++value) {
      count += std::count(elements_, elements_ + kElements, value) == 0 ? 1 : 0;
    }
    return count;
  }

 private:
  const bool buggy_;
  std::mutex mutex_;
  uint32_t elements_[kElements];
};

uint64_t run(const kernels::Arguments& arguments) {
  Sorter sorter(arguments.buggy);
  TSOMON_ATOMIC_SET("elements", &sorter, sizeof sorter);
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      sorter.put_in_order(static_cast<uint32_t>(round % (kElements - 1)), thread == 0);
    }
  });
  return sorter.missing();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "elements lost", run);
}
