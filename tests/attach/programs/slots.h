// Moments that several threads agree on without touching shared memory.
#pragma once

#include <cstdint>

#include <time.h>

// Returns at the the `number`th multiple of `length` nanoseconds after `start`, and `later`.
// `spin`: without giving the processor away, which would drain the store buffer.
inline void wait_for_slot(const timespec& start, uint64_t number, uint64_t length, uint64_t later,
                          bool spin) {
  const uint64_t offset = number * length + later + static_cast<uint64_t>(start.tv_nsec);
  timespec until{};
  until.tv_sec = start.tv_sec + static_cast<time_t>(offset / 1'000'000'000);
  until.tv_nsec = static_cast<long>(offset % 1'000'000'000);
  for (timespec now{}; spin;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec)) {
      return;
    }
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}
