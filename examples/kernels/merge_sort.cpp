// Merge sort by two threads that take the merges of a pass one after the other. Whether one is left
// and taking it are each under the lock, but not both together: a merge is done twice, or one
// that does not exist is.

#include <algorithm>
#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kElements = 64;

class MergeSort {
 public:
  explicit MergeSort(const kernels::Arguments& arguments) : arguments_(arguments) {
    TSOMON_ATOMIC_SET("merges", &next_, sizeof next_);
    TSOMON_ATOMIC_SET("elements", &from_, sizeof from_);
    TSOMON_ATOMIC_SET("elements", &to_, sizeof to_);
  }

  void refill(uint64_t seed) {
    for (uint32_t i = 0; i < kElements; ++i) {
      from_[i] = static_cast<uint32_t>((i + seed) * 37 % kElements);
    }
  }
  void begin_pass() { next_ = 0; }
  void end_pass() { std::copy(to_, to_ + kElements, from_); }

  // The merges of sorted runs of `width` elements.
  void pass(uint32_t width) {
    uint32_t merge = 0;
    while (take(kElements / (2 * width), merge)) {
      arguments_.pause();
      TSOMON_UNIT("merge;elements");
      const uint32_t* const left = from_ + 2 * width * merge;
      std::merge(left, left + width, left + width, left + 2 * width, to_ + 2 * width * merge);
    }
  }

  uint64_t out_of_order() const {
    return static_cast<uint64_t>(from_ + kElements -
                                 std::is_sorted_until(from_, from_ + kElements));
  }
  uint64_t wrong() const { return wrong_; }

 private:
  bool take(uint32_t merges, uint32_t& merge) {
    TSOMON_UNIT("take;merges");
    std::unique_lock<std::mutex> lock(mutex_);
    if (next_ == merges) {
      return false;
    }
    merge = next_;
    kernels::let_go(arguments_.buggy, lock);
    wrong_ += merge != next_ ? 1 : 0;
    next_ = merge + 1;
    return true;
  }

  const kernels::Arguments arguments_;
  std::mutex mutex_;
  uint32_t from_[kElements] = {};
  uint32_t to_[kElements] = {};
  uint32_t next_ = 0;
  uint64_t wrong_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  MergeSort sort(arguments);
  examples::Rounds passes(2);
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      if (thread == 0) {
        sort.refill(round);
      }
      for (uint32_t width = 1; width < kElements; width *= 2) {
        if (thread == 0) {
          sort.begin_pass();
        }
        passes.begin_round();
        sort.pass(width);
        passes.begin_round();
        if (thread == 0) {
          sort.end_pass();
        }
      }
    }
  });
  return sort.wrong() + sort.out_of_order();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 20, "merges taken twice, elements out of order", run);
}
