// A pool of tasks with two ends: plain_pool plain|fenced TASKS [late]
//
// After examples/task_pool, but not instrumented, and with takes that are functions. Each take
// moves its own index, then looks at the other's. The two threads take in turn, by the clock alone:
// no access orders them. Without a fence after the move it may still lie in the store buffer when
// the other thread looks, so the last task may be taken twice; with it takes that do not overlap
// are serializable. Takes that did overlap, because a thread was kept from running, are counted and
// told on standard error (they may give a task up that nobody takes).

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>
#include <x86intrin.h>

#include "slots.h"

constexpr int64_t kSlot = 4'000'000;  // nanoseconds
constexpr uint64_t kMaxTasks = 4096;
constexpr auto kRelaxed = std::memory_order_relaxed;

alignas(128) std::atomic<uint64_t> head{0};
alignas(128) std::atomic<uint64_t> tail{0};
alignas(128) std::atomic<uint32_t> owners[kMaxTasks];

template <bool kFenced>
__attribute__((noinline)) bool take_head(uint32_t thread) {
  const uint64_t task = head.load(kRelaxed);
  head.store(task + 1, kRelaxed);
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (tail.load(kRelaxed) <= task) {
    return false;
  }
  owners[task].store(thread, kRelaxed);
  return true;
}

template <bool kFenced>
__attribute__((noinline)) bool take_tail(uint32_t thread) {
  const uint64_t task = tail.load(kRelaxed) - 1;
  tail.store(task, kRelaxed);
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  if (head.load(kRelaxed) > task) {
    return false;
  }
  owners[task].store(thread, kRelaxed);
  return true;
}

struct Take {
  uint64_t begin;
  uint64_t end;
};

template <bool kFenced>
void run(uint64_t tasks) {
  tail.store(tasks);
  setpriority(PRIO_PROCESS, 0, -15);  // so that takes are seldom interrupted; not a must
  std::vector<Take> takes[2];
  uint64_t taken[2] = {0, 0};
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  const auto work = [&](uint32_t thread) {
    takes[thread].reserve(tasks);
    for (uint64_t round = 0; takes[thread].size() < tasks / 2; ++round) {
      if (spin_until(slot(start, round, kSlot, thread * kSlot / 2)) > kSlot / 8) {
        continue;  // too late: it is soon the other's turn
      }
      Take take{__rdtsc(), 0};
      const bool success = thread == 0 ? take_head<kFenced>(1) : take_tail<kFenced>(2);
      take.end = __rdtsc();
      takes[thread].push_back(take);
      taken[thread] += success ? 1 : 0;
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
  uint64_t overlaps = 0;
  for (const Take& left : takes[0]) {
    for (const Take& right : takes[1]) {
      overlaps += left.begin < right.end && right.begin < left.end ? 1 : 0;
    }
  }
  std::printf("%" PRIu64 " tasks taken\n", taken[0] + taken[1]);
  if (overlaps != 0) {
    std::fprintf(stderr, "%llu takes overlapped\n", static_cast<unsigned long long>(overlaps));
  }
}

int main(int argc, char** argv) {
  const bool fenced = argc > 1 && std::strcmp(argv[1], "fenced") == 0;
  uint64_t tasks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  tasks = tasks < 2 ? 2 : tasks > kMaxTasks ? kMaxTasks : tasks;
  if (argc > 3) {
    usleep(1'000'000);  // time to attach
  }
  if (fenced) {
    run<true>(tasks);
  } else {
    run<false>(tasks);
  }
  std::fflush(stdout);
  stay();
  return 0;
}
