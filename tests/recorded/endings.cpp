// A lost update, then the end of the process: endings [flood] WAY; flood: and much that follows it.
//
// The second thread's unit lies between the load and the store of the first one's, each time.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "tsomon.h"

char numbers[1U << 20];  // not of this file alone: nobody reads it, and its stores must stay

namespace {

std::atomic<int> counter{0};
int* volatile nowhere = nullptr;

void lose_update() {
  TSOMON_UNIT("outer");
  const int seen = counter.load();
  std::thread([] {
    TSOMON_UNIT("inner");
    counter.store(counter.load() + 1);
  }).join();
  counter.store(seen + 1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool flood = argc > 1 && std::strcmp(argv[1], "flood") == 0;
  if (flood) {
    --argc;
    ++argv;
  }
  const char* const way = argc > 1 ? argv[1] : "return";
  const auto is = [way](const char* name) { return std::strcmp(way, name) == 0; };
  lose_update();
  for (int i = 0; flood && i < 200'000; ++i) {
    const auto value = static_cast<uint32_t>(i) * 2654435761U;
    numbers[value % sizeof numbers] = static_cast<char>(value >> 24);  // nothing foresees it
  }
  if (is("segv")) {
    *nowhere = 1;
  } else if (is("kill")) {
    raise(SIGKILL);
  } else if (is("_exit")) {
    _exit(7);
  } else if (is("fork")) {
    const pid_t child = fork();
    if (child == 0) {
      lose_update();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  return 0;
}
