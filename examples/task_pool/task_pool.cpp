// A pool of tasks with two ends, after the example of Enea & Farzan (TACAS 2016): one thread takes
// from the head, the other from the tail. task_pool [plain|fenced] [MAX_ROUNDS]
//
// Each first claims a task by moving its own index, then looks at the other's index to see whether
// the claim holds; that look and marking the task as its own is the unit of work "take".
// If every store took effect at once, at most one thread could see the other's index unmoved, and
// the task would have one owner. On x86 the claim may still sit in the store buffer while the
// other's index is read: both threads take the same task. A fence after the claim cures it.
// (The claim is not part of the unit: two claims that meet and are both given up are no error,
// but as units they would not be serializable even if every store took effect at once.)

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

constexpr uint64_t kEnough = 10;  // stop when this many tasks were taken twice
constexpr auto kRelaxed = std::memory_order_relaxed;

template <bool kFenced>
class TaskPool {
 public:
  explicit TaskPool(uint64_t tasks) : owners_(tasks) {}

  // Makes the pool hold exactly `task`. No take may be under way.
  void refill(uint64_t task) {
    head_.store(task, kRelaxed);
    tail_.store(task + 1, kRelaxed);
  }

  bool has_task() const { return head_.load(kRelaxed) < tail_.load(kRelaxed); }

  bool take_head(uint64_t task, uint32_t thread) {
    head_.store(task + 1, kRelaxed);
    fence();
    TSOMON_UNIT("take");
    if (tail_.load(kRelaxed) <= task) {
      return false;
    }
    owners_[task].store(thread, std::memory_order_release);
    return true;
  }

  bool take_tail(uint64_t task, uint32_t thread) {
    tail_.store(task, kRelaxed);
    fence();
    TSOMON_UNIT("take");
    if (head_.load(kRelaxed) > task) {
      return false;
    }
    owners_[task].store(thread, std::memory_order_release);
    return true;
  }

 private:
  static void fence() {
    if constexpr (kFenced) {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }

  alignas(128) std::atomic<uint64_t> head_{0};  // the next task to take from the head
  alignas(128) std::atomic<uint64_t> tail_{0};  // one past the next task to take from the tail
  alignas(128) std::vector<std::atomic<uint32_t>> owners_;
};

struct Counts {
  uint64_t rounds = 0;
  uint64_t once = 0;
  uint64_t twice = 0;
};

template <bool kFenced>
void run(uint64_t max_rounds) {
  TaskPool<kFenced> pool(2 * max_rounds);  // tasks 0, 2, 4...: every value of an index occurs once
  examples::Rounds rounds(2);
  bool took[2] = {false, false};
  Counts counts[2];  // both threads count, alike

  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    examples::Results results;
    Counts& mine = counts[thread];
    while (mine.rounds < max_rounds && mine.twice < kEnough) {
      const uint64_t round = mine.rounds++;
      const uint64_t task = 2 * round;
      if (thread == 0) {
        pool.refill(task);
      }
      results.flush();
      rounds.begin_round();
      const bool work = pool.has_task();  // both threads see the task before either claims it
      rounds.begin_round(examples::Rounds::stagger(round, thread));
      results.write(round);
      bool success = false;
      if (work) {
        success = thread == 0 ? pool.take_head(task, 1) : pool.take_tail(task, 2);
      }
      took[thread] = success;
      rounds.begin_round();
      const int takers = (took[0] ? 1 : 0) + (took[1] ? 1 : 0);
      mine.once += takers == 1 ? 1 : 0;
      mine.twice += takers == 2 ? 1 : 0;
    }
  };
  std::thread head(work, 0);
  std::thread tail(work, 1);
  head.join();
  tail.join();

  const auto [done, once, twice] = counts[0];
  std::printf("%llu tasks: %llu taken once, %llu left, %llu taken by both threads\n",
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(once),
              static_cast<unsigned long long>(done - once - twice),
              static_cast<unsigned long long>(twice));
}

}  // namespace

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  const uint64_t max_rounds = examples::number_argument(argc, argv, 2, fenced ? 300 : 50'000);
  if (fenced) {
    run<true>(max_rounds);
  } else {
    run<false>(max_rounds);
  }
  return 0;
}
