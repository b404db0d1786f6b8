// Loads that are repeated, and what comes between: repeats [LOADS], which are made once more.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tsomon.h"

std::atomic<int> flag{0};
std::atomic<int> other{0};
std::atomic<int> change{0};
std::atomic<bool> waits{false};
std::atomic<bool> spins{false};
int mark = 0;
int seen_by_handler = 0;

namespace {

[[gnu::noinline]] void set_mark(int value) { mark = value; }

[[gnu::noinline]] int load(std::atomic<int>& from) { return from.load(std::memory_order_acquire); }

[[gnu::noinline]] void repeat(std::atomic<int>& from, int times) {
  for (int i = 0; i < times; ++i) {
    from.load(std::memory_order_acquire);
  }
}

void on_signal(int) {
  seen_by_handler = load(other);
  repeat(flag, 20);
}

[[gnu::noinline]] void repeat_with_signal(int times) {
  for (int i = 0; i < times; ++i) {
    flag.load(std::memory_order_acquire);
    if (i == times / 2) {
      raise(SIGUSR1);
    }
  }
}

[[gnu::noinline]] void alternate(int times) {
  for (int i = 0; i < times; ++i) {
    flag.load(std::memory_order_acquire);
    other.load(std::memory_order_acquire);
  }
}

void wait_for(int value) {
  while (change.load(std::memory_order_acquire) != value) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGUSR1, on_signal);
  std::thread waiter([] {
    repeat(change, 5);
    waits = true;
    wait_for(1);
    repeat(flag, 10);  // the thread ends behind them
  });
  for (const int times : {1, 2, 3, 4, 5, 6, 7, 8, 20, 1000}) {
    repeat(flag, times);
    set_mark(times);
  }
  repeat(flag, 10);
  repeat(other, 10);
  flag.store(1, std::memory_order_release);
  repeat(flag, 10);
  {
    TSOMON_UNIT("unit");
    repeat(flag, 10);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    repeat(flag, 10);
    other.fetch_add(1);
    repeat(other, 10);
  }
  repeat_with_signal(100);
  repeat_with_signal(6);
  alternate(20);
  while (!waits) {
  }
  change.store(1, std::memory_order_release);
  waiter.join();
  repeat(flag, argc > 1 ? std::atoi(argv[1]) : 0);
  set_mark(-1);
  // Goes on when the process ends.
  std::thread([] {
    spins = true;
    for (;;) {
      load(other);
    }
  }).detach();
  while (!spins) {
  }
  repeat(flag, 1000);
  std::printf("flag %p\nother %p\n", static_cast<void*>(&flag), static_cast<void*>(&other));
  std::printf("change %p\nmark %p\n", static_cast<void*>(&change), static_cast<void*>(&mark));
}
