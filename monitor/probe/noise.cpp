#include "monitor/probe/noise.h"

#include <cerrno>

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tsomon::probe {
namespace {

__thread uint64_t noise_state = 0;  // 0: not seeded yet

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

// splitmix64.
uint64_t next_random(uint32_t thread) {
  if (noise_state == 0) {
    noise_state = mix(options.noise_seed + 1) ^ mix(uint64_t{thread} << 32);
  }
  noise_state += 0x9E3779B97F4A7C15U;
  return mix(noise_state);
}

}  // namespace

void make_noise() {
  if (local.thread == nullptr || local.off) {
    return;
  }
  const uint64_t random = next_random(local.thread->number);
  if (random % 1000 >= options.noise) {
    return;
  }
  const int error = errno;
  const uint64_t kind = (random >> 32) % 4;
  if (kind == 0) {
    sched_yield();
  } else if (kind == 1) {
    const timespec shortest{0, 1};
    syscall(SYS_nanosleep, &shortest, nullptr);
  } else {
    const uint64_t end = __builtin_ia32_rdtsc() + (uint64_t{256} << ((random >> 40) % 9));
    while (__builtin_ia32_rdtsc() < end) {
      __builtin_ia32_pause();
    }
  }
  errno = error;
}

}  // namespace tsomon::probe
