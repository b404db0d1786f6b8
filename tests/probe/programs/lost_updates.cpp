// Two threads that load the same value and store the next one, again and again, for half a second.
#include <atomic>
#include <thread>

#include <sched.h>
#include <unistd.h>

#include "tsomon.h"

std::atomic<long> total{0};
std::atomic<long> loaded{0};

void add() {
  for (int round = 1; round <= 200; ++round) {
    TSOMON_UNIT("add");
    const long value = total.load();
    loaded.fetch_add(1);
    while (loaded.load() < 2 * round) {
      sched_yield();
    }
    total.store(value + 1);
    usleep(2'000);
  }
}

int main() {
  std::thread one(add);
  std::thread other(add);
  one.join();
  other.join();
}
