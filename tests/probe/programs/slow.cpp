// Threads that record little and then wait for ever, one of them in a signal handler: slow
// It says "done" when each of the three has had its 50 units.
#include <csignal>
#include <cstdio>
#include <thread>

#include <unistd.h>

#include "tsomon.h"

namespace {

long counted[3];

void work(int self) {
  for (int i = 0; i < 50; ++i) {
    TSOMON_UNIT("work");
    ++counted[self];
  }
}

void wait_for_ever() {
  for (;;) {
    pause();
  }
}

void on_signal(int) {
  work(2);
  std::puts("done");
  std::fflush(stdout);
  wait_for_ever();
}

}  // namespace

int main() {
  std::signal(SIGUSR1, on_signal);
  std::thread other([] {
    work(0);
    wait_for_ever();
  });
  std::thread([] { work(1); }).join();
  usleep(10'000);
  raise(SIGUSR1);
  other.join();
}
