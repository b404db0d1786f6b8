// A server that goes on until SIGTERM, with a unit that is not atomic: docs/guide/monitor.md.
// bank_server [correct]: with the lock held over the whole unit. bank_server busy: correct, and it never rests. SIGUSR2: it audits.
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

std::atomic<bool> audit_asked{false};
std::atomic<int64_t> audited{0};  // somebody uses it: else there is a specialised audit() alone

__attribute__((noinline)) int64_t audit() {
  TSOMON_UNIT("audit");
  const std::lock_guard<std::mutex> guard(lock);
  return balance;
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
  const bool busy = argc > 1 && std::string_view(argv[1]) == "busy";
  const bool correct = busy || (argc > 1 && std::string_view(argv[1]) == "correct");
  std::signal(SIGTERM, [](int) { stop = true; });
  std::signal(SIGUSR2, [](int) { audit_asked = true; });
  const auto serve = [correct, busy] {
    while (!stop) {
      deposit(correct);
      if (!busy) {
        usleep(50);
      }
      if (audit_asked.exchange(false)) {
        audited = audit();
      }
    }
  };
  std::thread first(serve);
  std::thread second(serve);
  first.join();
  second.join();
}
