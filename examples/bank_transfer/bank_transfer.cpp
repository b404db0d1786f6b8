// A bank: bank_transfer [unlocked|locked] [ROUNDS]
//
// Two threads move money between accounts; a transfer is a unit of work. Without the lock, two
// transfers that touch the same account overwrite each other and money appears or disappears.
// With the lock the transfers follow one another.

#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "examples/rounds.h"
#include "tsomon.h"

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint32_t kAccounts = 3;
constexpr int64_t kDeposit = 1000;
constexpr int64_t kExpected = kDeposit * kAccounts;

struct alignas(128) Account {
  std::atomic<int64_t> balance{kDeposit};
};

class Bank {
 public:
  explicit Bank(bool locked) : locked_(locked) {}

  void transfer(uint32_t from, uint32_t to, int64_t amount) {
    TSOMON_UNIT("transfer");
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (locked_) {
      lock.lock();
    }
    add(from, -amount);
    add(to, amount);
  }

  int64_t total() const {
    int64_t sum = 0;
    for (const Account& account : accounts_) {
      sum += account.balance.load(kRelaxed);
    }
    return sum;
  }

 private:
  void add(uint32_t account, int64_t amount) {
    std::atomic<int64_t>& balance = accounts_[account].balance;
    const int64_t before = balance.load(kRelaxed);
    examples::think();
    balance.store(before + amount, kRelaxed);
  }

  const bool locked_;
  std::mutex mutex_;
  Account accounts_[kAccounts];
};

}  // namespace

int main(int argc, char** argv) {
  const bool locked = argc > 1 && std::strcmp(argv[1], "locked") == 0;
  const uint64_t count = examples::number_argument(argc, argv, 2, 200);

  Bank bank(locked);
  examples::Rounds rounds(2);
  const auto work = [&](uint32_t thread) {
    examples::Rounds::take_processor(thread);
    for (uint64_t round = 0; round < count; ++round) {
      rounds.begin_round();
      const uint32_t from = round % kAccounts;
      const uint32_t to = (from + 1 + thread) % kAccounts;
      bank.transfer(from, to, thread == 0 ? 1 : 7);
    }
  };
  std::thread first(work, 0);
  std::thread second(work, 1);
  first.join();
  second.join();
  const uint64_t transfers = 2 * count;
  std::printf("%llu transfers, %lld in the bank, expected %lld\n",
              static_cast<unsigned long long>(transfers), static_cast<long long>(bank.total()),
              static_cast<long long>(kExpected));
  return 0;
}
