// Two threads that work at full rate in short units and meet nobody, until SIGTERM. It says whether what they have summed up is their number of units.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include <tsomon.h>

namespace {

std::atomic<bool> stop{false};

struct alignas(128) Sums {
  long of[16] = {};
};

__attribute__((noinline)) void add(Sums& sums) {
  TSOMON_UNIT("add");
  for (long& sum : sums.of) {
    ++sum;
  }
}

bool work() {
  Sums sums;
  long units = 0;
  for (; !stop.load(std::memory_order_relaxed); ++units) {
    add(sums);
  }
  for (const long sum : sums.of) {
    if (sum != units) {
      return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  std::signal(SIGTERM, [](int) { stop = true; });
  bool others = false;
  std::thread other([&] { others = work(); });
  const bool own = work();
  other.join();
  std::printf("%s\n", own && others ? "all are there" : "some are missing");
}
