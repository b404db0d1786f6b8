// An increment that another one always interrupts: a lost update in every run.
#include <atomic>
#include <chrono>
#include <thread>

#include <tsomon.h>

namespace {

std::atomic<int> counter{0};
std::atomic<int> turn{0};

void wait_for(int number) {
  while (turn.load(std::memory_order_acquire) != number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void interrupted_increment() {
  TSOMON_UNIT("interrupted");
  const int value = counter.load(std::memory_order_relaxed);
  turn.store(1, std::memory_order_release);
  wait_for(2);
  counter.store(value + 1, std::memory_order_relaxed);
}

void interrupting_increment() {
  wait_for(1);
  {
    TSOMON_UNIT("interrupting");
    const int value = counter.load(std::memory_order_relaxed);
    counter.store(value + 1, std::memory_order_relaxed);
  }
  turn.store(2, std::memory_order_release);
}

}  // namespace

int main() {
  std::thread other(interrupting_increment);
  interrupted_increment();
  other.join();
  return counter.load() == 1 ? 0 : 1;
}
