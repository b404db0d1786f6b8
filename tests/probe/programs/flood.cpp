// More records than the buffer holds: flood STORES. Says "done" before it ends.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tsomon.h"

constexpr int kStoresInUnit = 100;
constexpr long kCells = 1 << 20;
volatile long cells[2 * kCells];
std::mutex mutex;

void run(int me, long stores) {
  unsigned long place = 1;  // jumps about: nothing can be cached
  for (long i = 0; i < stores; i += kStoresInUnit) {
    TSOMON_UNIT("fill");
    const std::lock_guard<std::mutex> guard(mutex);
    for (int j = 0; j < kStoresInUnit; ++j) {
      place = place * 6364136223846793005 + 1442695040888963407;
      cells[me * kCells + static_cast<long>(place >> 44)] = i + j;
    }
  }
}

int main(int, char** argv) {
  const long stores = std::atol(argv[1]);
  std::thread other(run, 1, stores);
  run(0, stores);
  other.join();
  std::puts("done");
  std::fflush(stdout);
}
