// Two threads take turns at declared data by the functions of left_out.h, and work on data of their
// own in between. "touch": the second one stores to the declared data in this file, too.
#include "tests/probe/programs/left_out.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include <tsomon.h>

namespace {

constexpr long kRounds = 100;
Shared shared;
std::atomic<long> turn{0};
long own[2][8];

__attribute__((noinline)) void work(int thread, bool touch) {
  volatile long* const mine = own[thread];
  for (long i = 0; i < kRounds; ++i) {
    while (turn.load() != thread) {
      std::this_thread::yield();
    }
    tsomon_unit_begin("turn");
    places::add(shared, i);
    mine[i % 8] = mine[(i + 1) % 8] + sum(shared);
    tsomon_unit_end();
    turn.store(1 - thread);
  }
  if (touch && thread == 1) {
    *const_cast<volatile long*>(&shared.second) = 5;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool touch = argc > 1 && std::strcmp(argv[1], "touch") == 0;
  shared.list.resize(4);
  TSOMON_ATOMIC_SET("shared", &shared, sizeof shared);
  TSOMON_ATOMIC_SET("shared", shared.list.data(), 4 * sizeof(long));
  TSOMON_ATOMIC_SET("shared", &turn, sizeof turn);
  std::printf("first %lu\nsecond %lu\nlist %lu\nturn %lu\nown %lu\n",
              reinterpret_cast<uintptr_t>(&shared.first),
              reinterpret_cast<uintptr_t>(&shared.second),
              reinterpret_cast<uintptr_t>(shared.list.data()), reinterpret_cast<uintptr_t>(&turn),
              reinterpret_cast<uintptr_t>(own));
  std::thread other(work, 1, touch);
  work(0, touch);
  other.join();
}
