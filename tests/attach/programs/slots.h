// Moments that several threads agree on without touching shared memory, and the end of a test.
#pragma once

#include <cstdint>
#include <cstdlib>

#include <time.h>
#include <unistd.h>

// Moments: the `number`th multiple of `length` nanoseconds after `start`, and `later`.
inline timespec slot(const timespec& start, uint64_t number, uint64_t length, uint64_t later) {
  const uint64_t offset = number * length + later + static_cast<uint64_t>(start.tv_nsec);
  timespec moment{};
  moment.tv_sec = start.tv_sec + static_cast<time_t>(offset / 1'000'000'000);
  moment.tv_nsec = static_cast<long>(offset % 1'000'000'000);
  return moment;
}

inline void sleep_until(const timespec& moment) {
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr) != 0) {
  }
}

// Without giving the processor away, which would drain the store buffer. Returns by how many
// nanoseconds it is late.
inline int64_t spin_until(const timespec& moment) {
  for (;;) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t late =
        (now.tv_sec - moment.tv_sec) * 1'000'000'000 + (now.tv_nsec - moment.tv_nsec);
    if (late >= 0) {
      return late;
    }
  }
}

// While the file is there that the environment names: a test still looks at this process.
inline void stay() {
  const char* file = std::getenv("STAY");
  while (file != nullptr && *file != '\0' && access(file, F_OK) == 0) {
    usleep(5'000);
  }
}
