// A vector of blocks. Looking for a free block and marking it as taken are each under the lock,
// but not both together: two threads take the same block.

#include <atomic>
#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

constexpr uint32_t kBlocks = 8;
constexpr uint32_t kNone = kBlocks;

class Allocator {
 public:
  explicit Allocator(bool buggy) : buggy_(buggy) {}

  uint32_t allocate() {
    TSOMON_UNIT("allocate;blocks");
    std::unique_lock<std::mutex> lock(mutex_);
    uint32_t block = 0;
    while (block < kBlocks && taken_[block]) {
      ++block;
    }
    if (block != kNone) {
      kernels::let_go(buggy_, lock);
      collisions_ += taken_[block] ? 1 : 0;
      taken_[block] = true;
    }
    return block;
  }

  void free(uint32_t block) {
    TSOMON_UNIT("free;blocks");
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_[block] = false;
  }

  uint64_t collisions() const { return collisions_; }

 private:
  const bool buggy_;
  std::mutex mutex_;
  bool taken_[kBlocks] = {};
  uint64_t collisions_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  const auto allocator_on_heap = std::make_unique<Allocator>(arguments.buggy);
  Allocator& allocator = *allocator_on_heap;
  TSOMON_ATOMIC_SET("blocks", &allocator, sizeof allocator);
  kernels::run_threads(arguments, 2, [&](uint32_t) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      const uint32_t block = allocator.allocate();
      if (block != kNone) {
        allocator.free(block);
      }
    }
  });
  return allocator.collisions();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 500, "blocks taken twice", run);
}
