// Moments that several threads agree on without touching shared memory.
#pragma once

#include <cstdint>

#include <time.h>

// Sleeps until the `number`th multiple of `length` nanoseconds after `start`, and `later`.
inline void wait_for_slot(const timespec& start, uint64_t number, uint64_t length, uint64_t later) {
  const uint64_t offset = number * length + later + static_cast<uint64_t>(start.tv_nsec);
  timespec until{};
  until.tv_sec = start.tv_sec + static_cast<time_t>(offset / 1'000'000'000);
  until.tv_nsec = static_cast<long>(offset % 1'000'000'000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}
