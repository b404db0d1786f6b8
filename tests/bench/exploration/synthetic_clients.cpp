// Small tests that GenMC has too (its tests/correct/synthetic), written anew, with its threads:
//
//   synthetic_clients ainc | readers | casrot | lastzero | fib_bench N
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <tsomon.h>

namespace {

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr int kMost = 32;

std::atomic<int> x{0};
std::atomic<int> y{0};
std::atomic<int> places[kMost];
int count = 0;

void add(int) { x.fetch_add(1, std::memory_order_relaxed); }

void rotate(int next) {
  int expected = next - 1;
  x.compare_exchange_strong(expected, next, std::memory_order_relaxed);
}

// The first one writes.
void read_or_write(int number) {
  if (number == 0) {
    x.store(42, kRelease);
  } else {
    static_cast<void>(x.load(kAcquire));
  }
}

// The first one looks for the last zero.
void last_zero(int number) {
  if (number != 0) {
    places[number].store(places[number - 1].load(kAcquire) + 1, kRelease);
    return;
  }
  for (int i = count; places[i].load(kAcquire) != 0; --i) {
  }
}

// The third one looks.
void fibonacci(int number) {
  if (number == 2) {
    if (x.load(kAcquire) > 144 || y.load(kAcquire) > 144) {
      std::abort();
    }
    return;
  }
  std::atomic<int>& mine = number == 0 ? x : y;
  for (int i = 0; i < count; ++i) {
    const int before_x = x.load(kAcquire);
    const int before_y = y.load(kAcquire);
    mine.store(before_x + before_y, kRelease);
  }
}

void (*work)(int) = nullptr;

void* run_thread(void* number) {
  work(static_cast<int>(reinterpret_cast<intptr_t>(number)));
  return nullptr;
}

void run(void (*what)(int), int from, int to) {
  work = what;
  pthread_t threads[kMost];
  for (int i = from; i < to; ++i) {
    pthread_create(&threads[i], nullptr, run_thread, reinterpret_cast<void*>(intptr_t{i}));
  }
  for (int i = from; i < to; ++i) {
    pthread_join(threads[i], nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  count = argc > 2 ? std::atoi(argv[2]) : 2;
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (count < 1 || count + 1 >= kMost) {
    return 2;
  }
  if (is("ainc")) {
    run(add, 0, count);
  } else if (is("casrot")) {
    run(rotate, 1, count + 1);
  } else if (is("readers")) {
    run(read_or_write, 0, count + 1);
  } else if (is("lastzero")) {
    run(last_zero, 0, count + 1);
  } else if (is("fib_bench")) {
    x = 1;
    y = 1;
    run(fibonacci, 0, 3);
  } else {
    return 2;
  }
  return 0;
}
