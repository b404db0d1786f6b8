// A timer's handler stores to an atomic while two threads use locks, atomics, plain memory and
// functions of the C library. Says how often it ran.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include <signal.h>
#include <sys/time.h>

#include "tsomon.h"

namespace {

std::mutex mutex;
long under_lock[2];
std::atomic<long> handled{0};
std::atomic<long> flags[2];
long cells[2][64];
char texts[2][32];

void work(int me) {
  for (long i = 0; i < 20000; ++i) {
    {
      TSOMON_UNIT("locked");
      const std::lock_guard<std::mutex> guard(mutex);
      ++under_lock[0];
      ++under_lock[1];
    }
    flags[me].store(i, std::memory_order_release);
    flags[1 - me].load(std::memory_order_acquire);
    for (long& cell : cells[me]) {
      cell += i;
    }
    std::snprintf(texts[me], sizeof texts[me], "%ld", i);
    cells[me][0] += static_cast<long>(std::strlen(texts[me]));
  }
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = [](int) { handled.fetch_add(1); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  std::thread other([] { work(1); });
  const itimerval often{{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  work(0);
  other.join();
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("handled %ld\n", handled.load());
  return 0;
}
