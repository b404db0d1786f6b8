// Two players hit a ball that is taken away and put back in between. That it is there is looked up
// before the hit, under the lock, but the lock is not held until then: hits at no ball.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

struct Ball {
  uint64_t hits = 0;
};

class Table {
 public:
  explicit Table(bool buggy) : buggy_(buggy) {}

  void hit() {
    TSOMON_UNIT("hit;ball");
    std::unique_lock<std::mutex> lock(mutex_);
    if (ball_ == nullptr) {
      return;
    }
    kernels::let_go(buggy_, lock);
    if (ball_ == nullptr) {
      ++misses_;
    } else {
      ++ball_->hits;
    }
  }

  void take_away() {
    TSOMON_UNIT("take away;ball");
    const std::lock_guard<std::mutex> lock(mutex_);
    ball_ = nullptr;
  }
  void put_back() {
    TSOMON_UNIT("put back;ball");
    const std::lock_guard<std::mutex> lock(mutex_);
    ball_ = &the_ball_;
  }

  uint64_t misses() const { return misses_; }

 private:
  const bool buggy_;
  std::mutex mutex_;
  Ball the_ball_;
  Ball* ball_ = &the_ball_;
  uint64_t misses_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  Table table(arguments.buggy);
  TSOMON_ATOMIC_SET("ball", &table, sizeof table);
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      if (thread == 0) {
        table.hit();
      } else {
        table.take_away();
        table.put_back();
      }
    }
  });
  return table.misses();
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 500, "hits at no ball", run);
}
