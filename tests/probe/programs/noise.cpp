// Places that noise may delay, 1,000 times each; prints how often the thread gave up its processor
// of its own accord, and whether errno survived.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <thread>

#include <sys/resource.h>

#include "tsomon.h"

std::mutex mutex;
std::atomic<int> counter{0};
int plain = 0;

long voluntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

int main() {
  std::thread([] {}).join();  // recording begins
  const long before = voluntary_switches();
  errno = 77;
  for (int i = 0; i < 1000; ++i) {
    TSOMON_UNIT("step");
    counter.fetch_add(1);
    const std::lock_guard<std::mutex> lock(mutex);
    plain = plain + 1;
  }
  const int error = errno;
  std::printf("switches %ld\nerrno %d\n", voluntary_switches() - before, error);
}
