// As small as can be explored: two threads store to a variable.
#include <atomic>
#include <thread>

#include "tsomon.h"

static std::atomic<int> cell{0};

int main() {
  std::thread other([] { cell.store(1); });
  cell.store(2);
  other.join();
  tsomon_outcome("%d", cell.load());
}
