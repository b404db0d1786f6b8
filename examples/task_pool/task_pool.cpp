// A pool of tasks with two ends, after the example of Enea & Farzan (TACAS 2016): one thread takes
// from the head, the other from the tail. task_pool [plain|fenced] [ROUNDS]
//
// Each first claims a task by moving its own index, then looks at the other's index to see whether
// the claim holds; that look and marking the task as its own is the unit of work "take".
// If every store took effect at once, at most one thread could see the other's index unmoved, and
// the last task would have one owner. On x86 the claim may still sit in the store buffer while the
// other's index is read: both threads take the same task. A fence after the claim cures it.

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

constexpr uint64_t kNone = UINT64_MAX;
constexpr auto kRelaxed = std::memory_order_relaxed;

class TaskPool {
 public:
  TaskPool(bool fenced, uint64_t tasks) : fenced_(fenced), owners_(tasks) {}

  // Makes the pool hold exactly `task`. No take may be under way.
  void refill(uint64_t task) {
    head_.store(task, kRelaxed);
    tail_.store(task + 1, kRelaxed);
  }

  uint64_t take_head(uint32_t thread) {
    const uint64_t task = head_.load(kRelaxed);
    head_.store(task + 1, kRelaxed);
    fence();
    TSOMON_UNIT("take head");
    if (tail_.load(kRelaxed) <= task) {
      return kNone;
    }
    owners_[task].store(thread, std::memory_order_release);
    return task;
  }

  uint64_t take_tail(uint32_t thread) {
    const uint64_t task = tail_.load(kRelaxed) - 1;
    tail_.store(task, kRelaxed);
    fence();
    TSOMON_UNIT("take tail");
    if (head_.load(kRelaxed) > task) {
      return kNone;
    }
    owners_[task].store(thread, std::memory_order_release);
    return task;
  }

 private:
  void fence() const {
    if (fenced_) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  const bool fenced_;
  alignas(128) std::atomic<uint64_t> head_{0};  // the next task to take from the head
  alignas(128) std::atomic<uint64_t> tail_{0};  // one past the next task to take from the tail
  alignas(128) std::vector<std::atomic<uint32_t>> owners_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  const uint64_t count = examples::number_argument(argc, argv, 2, 1000);

  TaskPool pool(fenced, 2 * count);  // tasks 0, 2, 4...: every value of an index occurs once
  examples::Rounds rounds(2);
  std::vector<uint64_t> taken[2] = {std::vector<uint64_t>(count), std::vector<uint64_t>(count)};

  const auto work = [&](uint32_t thread) {
    examples::Results results;
    for (uint64_t round = 0; round < count; ++round) {
      if (thread == 0) {
        pool.refill(2 * round);
      }
      rounds.begin_round();
      results.write(round);
      taken[thread][round] = thread == 0 ? pool.take_head(1) : pool.take_tail(2);
      rounds.begin_round();
    }
  };
  std::thread tail(work, 1);
  work(0);
  tail.join();

  uint64_t once = 0;
  uint64_t twice = 0;
  for (uint64_t round = 0; round < count; ++round) {
    const int takers = (taken[0][round] != kNone ? 1 : 0) + (taken[1][round] != kNone ? 1 : 0);
    once += takers == 1 ? 1 : 0;
    twice += takers == 2 ? 1 : 0;
  }
  std::printf("%llu tasks: %llu taken once, %llu left, %llu taken by both threads\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(once),
              static_cast<unsigned long long>(count - once - twice),
              static_cast<unsigned long long>(twice));
  return 0;
}
