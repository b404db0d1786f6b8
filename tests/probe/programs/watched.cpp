// Accesses of every kind to memory of which parts are declared, the same in every run. With the
// argument "late" one more part is declared when the threads run, with "many" very many, which are
// then filled at once.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include <pthread.h>
#include <semaphore.h>

#include "tsomon.h"

namespace {

constexpr uint32_t kPage = 4096;
constexpr uint32_t kSize = 8 * kPage;
constexpr int kOperations = 4000;
alignas(4096) char arena[kSize];
sem_t semaphore;
pthread_once_t once = PTHREAD_ONCE_INIT;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 33) % bound;
  }

 private:
  uint64_t state_;
};

template <typename T>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
  T value;
};

template <typename T>
void plain(char* at, bool store) {
  auto* const place = reinterpret_cast<volatile Unaligned<T>*>(at);
  if (store) {
    place->value = 1;
  } else {
    static_cast<void>(place->value);
  }
}

template <typename T>
void atomic(char* at, uint32_t which) {
  T* const place = reinterpret_cast<T*>(at - reinterpret_cast<uint64_t>(at) % sizeof(T));
  T expected = 77;
  switch (which) {
    case 0:
      static_cast<void>(__atomic_load_n(place, __ATOMIC_ACQUIRE));
      break;
    case 1:
      __atomic_store_n(place, 2, __ATOMIC_RELEASE);
      break;
    case 2:
      __atomic_store_n(place, 3, __ATOMIC_SEQ_CST);
      break;
    case 3:
      __atomic_fetch_add(place, 1, __ATOMIC_RELAXED);
      break;
    case 4:
      __atomic_exchange_n(place, 4, __ATOMIC_ACQ_REL);
      break;
    default:
      __atomic_compare_exchange_n(place, &expected, 5, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
}

template <typename T>
void touch(char* at, Random& random) {
  const uint32_t which = random.below(10);
  if (which < 6) {
    atomic<T>(at, which);
  } else {
    plain<T>(at, which < 8);
  }
}

[[gnu::noinline]] void fill(char* at, size_t size) {
  std::memset(at, 1, size);
  asm volatile("" : : "r"(at) : "memory");
}

void work(uint64_t seed) {
  TSOMON_UNIT("work");
  Random random(seed);
  for (int i = 0; i < kOperations; ++i) {
    char* const at = arena + random.below(kSize - 2 * kPage);
    switch (random.below(8)) {
      case 0:
        touch<uint8_t>(at, random);
        break;
      case 1:
        touch<uint16_t>(at, random);
        break;
      case 2:
        touch<uint32_t>(at, random);
        break;
      case 3:
        touch<uint64_t>(at, random);
        break;
      case 4:
        touch<unsigned __int128>(at, random);
        break;
      case 5:
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        break;
      case 6:
        std::memset(at, 6, random.below(40) == 0 ? kPage + 100 : 1 + random.below(60));
        break;
      default:
        std::memmove(at, arena + random.below(kSize - 2 * kPage), 1 + random.below(60));
    }
  }
  sem_post(&semaphore);
  pthread_once(&once, [] {});
}

}  // namespace

int main(int argc, char** argv) {
  TSOMON_ATOMIC_SET("bytes", arena + 3, 1);
  TSOMON_ATOMIC_SET("bytes", arena + 100, 24);
  TSOMON_ATOMIC_SET("bytes", arena + 1004, 12);
  TSOMON_ATOMIC_SET("halves", arena + kPage + kPage / 2, kPage);
  TSOMON_ATOMIC_SET("pages", arena + 3 * kPage, 2 * kPage + 8);
  for (uint32_t i = 0; i < 40; ++i) {
    TSOMON_ATOMIC_SET("holes", arena + 5 * kPage + 200 + 16 * i, 8);
  }
  sem_init(&semaphore, 0, 0);
  std::printf("arena %p\nsemaphore %p\nonce %p\n", static_cast<void*>(arena),
              static_cast<void*>(&semaphore), static_cast<void*>(&once));
  work(1);
  std::thread other(work, 2);
  other.join();
  if (argc > 1 && std::strcmp(argv[1], "many") == 0) {
    for (uint32_t i = 0; i < 100; ++i) {
      TSOMON_ATOMIC_SET("many", arena + 7 * kPage + 16 * i, 8);
    }
    fill(arena + 7 * kPage, 1600);
  } else if (argc > 1) {
    plain<uint64_t>(arena + 7 * kPage, true);
    TSOMON_ATOMIC_SET("late", arena + 7 * kPage, 8);
    TSOMON_ATOMIC_SET("late", arena + 7 * kPage, 8);
    plain<uint64_t>(arena + 7 * kPage, false);
  }
}
