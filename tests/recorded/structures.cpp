// Atomic objects of all sizes; compilers call libatomic for most of them, clang for all structures.
//   structures all        what the operations do
//   structures lost SIZE  two threads that load and store in a unit, and sleep in between
//   structures kept SIZE  the same with a compare-exchange that is repeated
//   structures lost_now SIZE, kept_now SIZE    one unit a thread without sleep, to be explored
#include <array>
#include <atomic>
#undef NDEBUG
#include <cassert>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include <tsomon.h>
#include <unistd.h>

namespace {

template <size_t SIZE>
using Bytes = std::array<unsigned char, SIZE>;

template <size_t SIZE>
Bytes<SIZE> all_are(unsigned char value) {
  Bytes<SIZE> bytes;
  bytes.fill(value);
  return bytes;
}
template <size_t SIZE>
Bytes<SIZE> next(Bytes<SIZE> bytes) {
  for (size_t i = 0; i < SIZE && ++bytes[i] == 0; ++i) {
  }
  return bytes;
}
template <size_t SIZE>
size_t number(const Bytes<SIZE>& bytes) {
  return bytes[0] + (SIZE > 1 ? 256U * bytes[SIZE > 1 ? 1 : 0] : 0U);
}

template <size_t SIZE>
void all() {
  static std::atomic<Bytes<SIZE>> object{all_are<SIZE>(1)};
  assert(object.load() == all_are<SIZE>(1));
  object.store(all_are<SIZE>(2));
  assert(object.exchange(all_are<SIZE>(3)) == all_are<SIZE>(2));
  Bytes<SIZE> expected = all_are<SIZE>(4);
  assert(!object.compare_exchange_strong(expected, all_are<SIZE>(5)));
  assert(expected == all_are<SIZE>(3));
  assert(object.compare_exchange_strong(expected, all_are<SIZE>(5)));
  assert(object.load(std::memory_order_relaxed) == all_are<SIZE>(5));
  object.store(all_are<SIZE>(0), std::memory_order_relaxed);
  const auto count = [] {
    for (int i = 0; i < 500; ++i) {
      Bytes<SIZE> now = object.load();
      while (!object.compare_exchange_weak(now, next(now))) {
      }
    }
  };
  std::thread other(count);
  count();
  other.join();
  assert(number(object.load()) == (SIZE > 1 ? 1000 : 1000 % 256));
}

template <size_t SIZE>
std::atomic<Bytes<SIZE>> shared{all_are<SIZE>(0)};

template <size_t SIZE>
void lose(int times, int microseconds) {
  for (int i = 0; i < times; ++i) {
    TSOMON_UNIT("lose");
    const Bytes<SIZE> now = shared<SIZE>.load();
    if (microseconds != 0) {
      usleep(static_cast<useconds_t>(microseconds));
    }
    shared<SIZE>.store(next(now));
  }
}
template <size_t SIZE>
void keep(int times, int microseconds) {
  for (int i = 0; i < times; ++i) {
    if (microseconds != 0) {
      usleep(static_cast<useconds_t>(microseconds));
    }
    TSOMON_UNIT("keep");
    Bytes<SIZE> now = shared<SIZE>.load(std::memory_order_relaxed);
    while (!shared<SIZE>.compare_exchange_strong(now, next(now))) {
    }
  }
}
template <size_t SIZE>
int run(std::string_view what) {
  const bool explored = what.ends_with("_now");
  const auto body = [=] {
    (what.starts_with("lost") ? lose<SIZE> : keep<SIZE>)(explored ? 1 : 100, explored ? 0 : 50);
  };
  std::thread first(body);
  std::thread second(body);
  first.join();
  second.join();
  tsomon_outcome("%zu", number(shared<SIZE>.load()));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  if (what == "all") {
    all<1>();
    all<2>();
    all<3>();
    all<4>();
    all<8>();
    all<12>();
    all<16>();
    all<24>();
    all<2000>();
    std::puts("all right");
    return 0;
  }
  switch (count > 2 ? std::atoi(arguments[2]) : 0) {
    case 3:
      return run<3>(what);
    case 8:
      return run<8>(what);
    case 12:
      return run<12>(what);
    case 16:
      return run<16>(what);
    case 2000:
      return run<2000>(what);
    default:
      return 2;
  }
}
