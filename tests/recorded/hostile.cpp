// A unit that two threads tear, in a function whose name check_names changes.
#include <atomic>
#include <thread>

#include <tsomon.h>

std::atomic<long> balance{0};

extern "C" __attribute__((noinline)) void hostile(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    TSOMON_UNIT("transfer");
    const long before = balance.load(std::memory_order_relaxed);
    balance.store(before + 1, std::memory_order_relaxed);
  }
}

int main() {
  std::thread other(hostile, 2000);
  hostile(2000);
  other.join();
}
