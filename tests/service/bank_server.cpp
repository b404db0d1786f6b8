// A server that goes on until SIGTERM, with a unit that is not atomic: docs/guide/monitor.md.
// bank_server [correct]: with the lock held over the whole unit.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>

#include <tsomon.h>
#include <unistd.h>

namespace {

std::mutex lock;
int64_t balance = 0;
std::atomic<bool> stop{false};

__attribute__((noinline)) int64_t look() {
  const std::lock_guard<std::mutex> guard(lock);
  return balance;
}

__attribute__((noinline)) void put(int64_t value) {
  const std::lock_guard<std::mutex> guard(lock);
  balance = value;
}

__attribute__((noinline)) void deposit(bool correct) {
  TSOMON_UNIT("deposit");
  if (correct) {
    const std::lock_guard<std::mutex> guard(lock);
    ++balance;
  } else {
    const int64_t seen = look();
    usleep(100);  // asks somebody else whether it may
    put(seen + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool correct = argc > 1 && std::string_view(argv[1]) == "correct";
  std::signal(SIGTERM, [](int) { stop = true; });
  const auto serve = [correct] {
    while (!stop) {
      deposit(correct);
      usleep(50);
    }
  };
  std::thread first(serve);
  std::thread second(serve);
  first.join();
  second.join();
}
