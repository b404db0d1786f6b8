// Sleeping on a word until another thread of the process changes it (futex(2)). Async-signal-safe; changes errno.
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tsomon::probe {

// While the word has that value, or until somebody wakes, a signal comes, or the time is over; then false. Below 0: any time.
inline bool futex_wait(std::atomic<uint32_t>* word, uint32_t value, long microseconds) {
  timespec time{microseconds / 1'000'000, (microseconds % 1'000'000) * 1000};
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, microseconds < 0 ? nullptr : &time,
                 nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

// All that wait.
inline void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tsomon::probe
