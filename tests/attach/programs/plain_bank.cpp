// Two threads move money: plain_bank unlocked|locked ROUNDS [late|exec|fork]
//
// After examples/bank_transfer, but not instrumented, slow, and with transfers that are functions.
// With "late" the threads are started after a while; with "exec" the program executes itself at its
// end, with "fork" a child makes transfers, too (of its own copy of the money). Unlocked transfers
// of one round overlap and lose money; locked ones follow one another.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

#ifdef HAVE_SDT
#include <sys/sdt.h>
#define MARK(name) DTRACE_PROBE(bank, name)
#else
#define MARK(name)
#endif

constexpr uint64_t kSlot = 5'000'000;  // nanoseconds
constexpr int kAccounts = 3;

struct alignas(128) Account {
  volatile int64_t balance = 1000;
};

Account accounts[kAccounts];
std::mutex bank_lock;
volatile int64_t fees = 0;

// As a transfer that asks somebody else would.
static void think() {
  const timespec time{0, 1'000'000};
  nanosleep(&time, nullptr);
}

__attribute__((noinline)) void transfer_unlocked(int from, int to, int64_t amount) {
  MARK(transfer_begin);
  const int64_t before = accounts[from].balance;
  const int64_t fee = fees;
  think();
  accounts[from].balance = before - amount - fee;
  accounts[to].balance = accounts[to].balance + amount;
  MARK(transfer_end);
}

__attribute__((noinline)) void transfer_locked(int from, int to, int64_t amount) {
  const std::lock_guard<std::mutex> guard(bank_lock);
  const int64_t before = accounts[from].balance;
  const int64_t fee = fees;
  think();
  accounts[from].balance = before - amount - fee;
  accounts[to].balance = accounts[to].balance + amount;
}

int main(int argc, char** argv) {
  const bool locked = argc > 1 && std::strcmp(argv[1], "locked") == 0;
  const uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300;
  const char* const mode = argc > 3 ? argv[3] : "";
  if (std::strcmp(mode, "late") == 0) {
    usleep(500'000);
  }
  pid_t child = -1;
  if (std::strcmp(mode, "fork") == 0) {
    usleep(500'000);
    child = fork();
    if (child == 0) {
      for (int i = 0; i < 100; ++i) {
        transfer_unlocked(i % kAccounts, (i + 1) % kAccounts, 1);
      }
      _exit(0);
    }
  }
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  const auto work = [&](int thread) {
    for (uint64_t round = 0; round < rounds; ++round) {
      sleep_until(slot(start, round, kSlot, 0));
      const int from = static_cast<int>(round % kAccounts);
      const int to = (from + 1 + thread) % kAccounts;
      (locked ? transfer_locked : transfer_unlocked)(from, to, thread == 0 ? 1 : 7);
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
  if (child > 0) {
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) {
      std::printf("the child failed\n");
    }
  }
  std::printf("%" PRIu64 " transfers\n", 2 * rounds);
  if (locked) {
    int64_t total = 0;
    for (const Account& account : accounts) {
      total += account.balance;
    }
    std::printf("%lld in the bank\n", static_cast<long long>(total));
  }
  std::fflush(stdout);
  if (std::strcmp(mode, "exec") == 0) {
    execl("/proc/self/exe", argv[0], argv[1], argv[2], static_cast<char*>(nullptr));
  }
  stay();
  return 0;
}
