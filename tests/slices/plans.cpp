// A program that is watched by plans: two threads work on what is their own nearly all of the time. plans MODE, until
// SIGTERM:
//   meet     both move money at the same moment, in units that give the lock back in between, every few milliseconds
//   seldom   both do that once in two seconds
//   units    likewise, and what else they do are short units, one after another, in code that runs all the time
//   inlined  both do nothing but short units that meet, without a call of a function
//   NUMBER   both do that every so many milliseconds
// It says how often.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <tsomon.h>
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#else
#define DTRACE_PROBE(provider, name)
#endif

namespace {

using Ticks = unsigned long long;

std::atomic<bool> stop{false};
Ticks millisecond = 0;
std::atomic<long> arrived{0};
std::mutex lock;
long balance = 0;
std::atomic<long> counter{0};

void on_signal(int) { stop = true; }

// Without an access to memory.
inline void wait_until(Ticks until) {
  while (__builtin_ia32_rdtsc() < until) {
  }
}
// Until the other thread is there, too.
void meet() {
  const long mine = arrived.fetch_add(1);
  while (arrived.load() < mine - mine % 2 + 2 && !stop) {
    wait_until(__builtin_ia32_rdtsc() + millisecond / 100);
  }
}
__attribute__((noinline)) long look() {
  const std::lock_guard<std::mutex> guard(lock);
  return balance;
}
__attribute__((noinline)) void put(long value) {
  const std::lock_guard<std::mutex> guard(lock);
  balance = value;
}
__attribute__((noinline)) void move_some() {
  DTRACE_PROBE(plans, moves);
  tsomon_unit_begin("move_some");
  const long before = look();
  wait_until(__builtin_ia32_rdtsc() + millisecond);
  put(before + 1);
  tsomon_unit_end();
}
__attribute__((noinline)) void seldom() {
  meet();
  move_some();
}
// Nobody does.
__attribute__((noinline)) void never() { move_some(); }

// Mostly in registers.
__attribute__((noinline)) unsigned long grind(std::vector<unsigned long>& own, unsigned long from) {
  for (unsigned long& each : own) {
    for (int i = 0; i < 3000; ++i) {
      from ^= from << 13;
      from ^= from >> 7;
      from ^= from << 17;
    }
    each += from;
  }
  return from;
}

__attribute__((noinline)) unsigned long add_up(std::vector<unsigned long>& own) {
  TSOMON_UNIT("add_up");
  for (size_t i = 1; i < own.size(); ++i) {
    own[i] += own[i - 1] + 1;
  }
  return own.back();
}

void work(const char* mode, Ticks begun) {
  std::vector<unsigned long> own(16, 1);
  unsigned long sum = 1;
  const int number = std::atoi(mode);
  const Ticks period = millisecond * (number != 0                      ? number
                                      : std::strcmp(mode, "meet") == 0 ? 3
                                                                       : 2000);
  while (std::strcmp(mode, "inlined") == 0 && !stop) {
    tsomon_unit_begin("inlined");
    counter.store(counter.load() + 1);
    tsomon_unit_end();
  }
  for (Ticks next = begun + period; !stop;) {
    sum = std::strcmp(mode, "units") == 0 ? add_up(own) : grind(own, sum);
    if (__builtin_ia32_rdtsc() >= next) {
      seldom();
      next += period;
    }
  }
  if (sum == 42) {
    std::puts("forty-two");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "meet";
  std::signal(SIGTERM, on_signal);
  if (argc > 9) {
    never();
  }
  const Ticks before = __builtin_ia32_rdtsc();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Ticks begun = __builtin_ia32_rdtsc();
  millisecond = (begun - before) / 20;
  std::thread other(work, mode, begun);
  work(mode, begun);
  other.join();
  std::printf("done %ld\n", arrived.load() / 2);
}
