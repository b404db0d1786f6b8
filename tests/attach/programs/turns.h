// Two threads that take from a pool of tasks in turn, by the clock alone.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include <x86intrin.h>

#include "slots.h"

using Take = bool (*)(uint32_t thread);

// Half of `tasks` takes by each of two threads. Tells how many succeeded, and on standard error how
// many overlapped.
inline void alternate(uint64_t tasks, Take take_head, Take take_tail) {
  constexpr int64_t kSlot = 4'000'000;  // nanoseconds
  struct Span {
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Span> takes[2];
  uint64_t taken[2] = {0, 0};
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  const auto work = [&](uint32_t thread) {
    takes[thread].reserve(tasks);
    for (uint64_t round = 0; takes[thread].size() < tasks / 2; ++round) {
      if (spin_until(slot(start, round, kSlot, thread * kSlot / 2)) > kSlot / 8) {
        continue;  // too late: it is soon the other's turn
      }
      Span take{__rdtsc(), 0};
      const bool success = thread == 0 ? take_head(1) : take_tail(2);
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
  for (const Span& left : takes[0]) {
    for (const Span& right : takes[1]) {
      overlaps += left.begin < right.end && right.begin < left.end ? 1 : 0;
    }
  }
  std::printf("%" PRIu64 " tasks taken\n", taken[0] + taken[1]);
  if (overlaps != 0) {
    std::fprintf(stderr, "%llu takes overlapped\n", static_cast<unsigned long long>(overlaps));
  }
}
