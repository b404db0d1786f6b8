// An object whose last reference goes while another thread takes one: revived ROUNDS [PAUSE]
//
// It prints in how many rounds the taker found the object without a reference and still alive: it took one between what the
// other thread's unit did. In other rounds one of the two units came first.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tsomon.h"

namespace {

constexpr int kDead = -1;

alignas(64) std::atomic<int> references{0};
alignas(64) std::atomic<int> object{0};
alignas(64) std::atomic<unsigned> arrived{0};

void meet(unsigned meeting) {
  arrived.fetch_add(1);
  while (arrived.load() < 2 * (meeting + 1)) {
  }
}

void drop() {
  const tsomon::ScopedUnit unit("drop");
  if (references.fetch_sub(1) == 1) {
    object.store(kDead, std::memory_order_relaxed);
  }
}

bool take(int alive) {
  const tsomon::ScopedUnit unit("take");
  const bool none = references.fetch_add(1) == 0;
  return object.load(std::memory_order_relaxed) == alive && none;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int pauses = argc > 2 ? std::atoi(argv[2]) : 40;
  int torn = 0;
  std::thread other([rounds] {
    for (int i = 0; i < rounds; ++i) {
      references.exchange(1);
      object.exchange(i);
      meet(2 * i);
      drop();
      meet(2 * i + 1);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    meet(2 * i);
    for (int pause = 0; pause < i % pauses; ++pause) {
      asm volatile("" ::: "memory");
    }
    torn += take(i) ? 1 : 0;
    meet(2 * i + 1);
  }
  other.join();
  std::printf("%d\n", torn);
}
