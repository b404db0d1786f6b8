// A critical section behind a flag of the program's own. Looking at the flag and setting it are two
// operations instead of one exchange: both threads enter.
// The unit is what the flag protects. (Waiting for the flag would not be serializable: who looks
// in vain, and again later, has seen two states of it.)

#include <atomic>

#include "examples/kernels/kernel.h"

namespace {

class Critical {
 public:
  explicit Critical(bool buggy) : buggy_(buggy) {
    TSOMON_ATOMIC_SET("counter", &counter_, sizeof counter_);
    // What orders the threads has to be watched, too.
    TSOMON_ATOMIC_SET("busy", &busy_, sizeof busy_);
  }

  void count() {
    enter();
    {
      TSOMON_UNIT("count;counter");
      const uint64_t seen = counter_;
      counter_ = seen + 1;
    }
    busy_.store(0, std::memory_order_release);
  }

  uint64_t counter() const { return counter_; }

 private:
  void enter() {
    if (buggy_) {
      do {
        wait();
      } while (busy_.load(std::memory_order_acquire) != 0);
      busy_.store(1);
    } else {
      do {
        wait();
      } while (busy_.exchange(1) != 0);
    }
  }
  // The looks in vain are not recorded: examples/rounds.h says why that is sound.
  void wait() const {
    while (examples::hidden_load(reinterpret_cast<const uint64_t&>(busy_)) != 0) {
      examples::think(1);
    }
  }

  const bool buggy_;
  alignas(128) std::atomic<uint64_t> busy_{0};
  alignas(128) uint64_t counter_ = 0;
};

uint64_t run(const kernels::Arguments& arguments) {
  Critical critical(arguments.buggy);
  examples::Rounds rounds(2);  // keep apart what has to be analysed together
  kernels::run_threads(arguments, 2, [&](uint32_t) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      rounds.begin_round();
      arguments.pause();
      critical.count();
    }
  });
  return 2 * arguments.rounds - critical.counter();
}

}  // namespace

int main(int argc, char** argv) { return kernels::run_kernel(argc, argv, 500, "counts lost", run); }
