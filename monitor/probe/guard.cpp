#include "monitor/probe/guard.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tsomon::probe {

uint64_t block_signals() {
  const uint64_t all = ~uint64_t{0};
  uint64_t old = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof old);
  return old;
}
void restore_signals(uint64_t mask) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, nullptr, sizeof mask);
}

void let_others_run(unsigned tries) {
  constexpr unsigned kYields = 64;
  if (tries < kYields) {
    sched_yield();
    return;
  }
  const timespec moment{0, 50'000};
  syscall(SYS_nanosleep, &moment, nullptr);
}

Guard::Guard(std::atomic<uint32_t>* lock) : lock_(lock), mask_(block_signals()) {
  for (unsigned tries = 0; lock_->exchange(1, std::memory_order_acquire) != 0; ++tries) {
    let_others_run(tries);
  }
}
Guard::~Guard() {
  lock_->store(0, std::memory_order_release);
  restore_signals(mask_);
}

}  // namespace tsomon::probe
