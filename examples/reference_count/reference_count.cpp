// A reference that is taken while the last one is given back: reference_count [unlocked|locked]
// [ROUNDS]
//
// Who finds an object in a cache may use it only if its count is not zero: looking and adding one
// are the unit "acquire". Each step is atomic by itself, but between them the last reference may be
// given back: the object is freed while it gets a new user. Here a lock around both cures it, as
// caches do that look up and free under their lock.

#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

constexpr uint64_t kEnough = 10;  // stop after so many freed objects were used

alignas(128) std::atomic<uint64_t> references{0};
alignas(128) std::mutex cache;

// Whether the object may be used.
bool acquire() {
  TSOMON_UNIT("acquire");
  if (references.load(std::memory_order_acquire) == 0) {
    return false;
  }
  references.fetch_add(1);
  return true;
}

// Whether it was the last one, and the object is freed.
bool release() {
  TSOMON_UNIT("release");
  return references.fetch_sub(1) == 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool locked = argc > 1 && std::strcmp(argv[1], "locked") == 0;
  const uint64_t most = examples::number_argument(argc, argv, 2, locked ? 300 : 20'000);

  examples::Rounds rounds(2);
  bool did[2] = {false, false};
  uint64_t objects[2] = {0, 0};  // both threads count, alike
  uint64_t used[2] = {0, 0};
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    while (objects[thread] < most && used[thread] < kEnough) {
      const uint64_t round = ++objects[thread];
      if (thread == 0) {
        references.store(1);  // the next object, which thread 0 holds
      }
      rounds.begin_round();
      rounds.begin_round(examples::Rounds::stagger(round, thread));
      std::unique_lock<std::mutex> lock(cache, std::defer_lock);
      if (locked) {
        lock.lock();
      }
      did[thread] = thread == 0 ? release() : acquire();
      if (locked) {
        lock.unlock();
      }
      rounds.begin_round();
      used[thread] += did[0] && did[1] ? 1 : 0;
    }
  };
  std::thread owner(work, 0);
  std::thread finder(work, 1);
  owner.join();
  finder.join();
  std::printf("%llu objects, used after they were freed: %llu\n",
              static_cast<unsigned long long>(objects[0]),
              static_cast<unsigned long long>(used[0]));
  return 0;
}
