// Two threads that do nothing but what is watched, for so many tenths of a second: hasty TENTHS.
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tsomon.h"

namespace {

std::mutex mutex;
long cells[64];

void work(std::chrono::steady_clock::time_point until) {
  do {
    for (int i = 0; i < 100; ++i) {
      TSOMON_UNIT("hasty");
      const std::lock_guard<std::mutex> guard(mutex);
      for (long& cell : cells) {
        ++cell;
      }
    }
  } while (std::chrono::steady_clock::now() < until);
}

}  // namespace

int main(int count, char** arguments) {
  const int tenths = count > 1 ? std::atoi(arguments[1]) : 1;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100) * tenths;
  std::thread other(work, until);
  work(until);
  other.join();
}
