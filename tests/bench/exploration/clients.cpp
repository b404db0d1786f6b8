// What the exploration is measured with.
//
//   clients store_buffer         two threads, each a store and a load of the other's location
//   clients stores N             two threads, each N stores to its own location and N loads of the other's
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <tsomon.h>

namespace {

std::atomic<int> x{0};
std::atomic<int> y{0};

void work(std::atomic<int>* mine, std::atomic<int>* other, int count) {
  for (int i = 1; i <= count; ++i) {
    mine->store(i, std::memory_order_release);
  }
  for (int i = 0; i < count; ++i) {
    static_cast<void>(other->load(std::memory_order_acquire));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[2]) : 1;
  std::thread other(work, &y, &x, count);
  work(&x, &y, count);
  other.join();
  return 0;
}
