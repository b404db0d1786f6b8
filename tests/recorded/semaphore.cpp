// Two threads whose units take a semaphore of the C++ library, and give it back.
#include <semaphore>
#include <thread>

#include <tsomon.h>

namespace {

std::binary_semaphore one(1);
long first = 0;
long second = 0;

void work() {
  for (int i = 0; i < 200; ++i) {
    TSOMON_UNIT("unit");
    one.acquire();
    ++first;
    ++second;
    one.release();
  }
}

}  // namespace

int main() {
  std::thread a(work);
  std::thread b(work);
  a.join();
  b.join();
  return first == second ? 0 : 1;
}
