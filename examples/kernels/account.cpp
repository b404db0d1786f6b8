// Accounts with a lock each. A transfer locks the account that it takes from and forgets the lock
// of the other one: money appears or disappears.

#include <mutex>

#include "examples/kernels/kernel.h"

namespace {

struct Account {
  std::mutex mutex;
  int64_t balance = 1000;
};

void transfer(Account& from, Account& to, int64_t amount, bool buggy) {
  TSOMON_UNIT("transfer;accounts");
  if (buggy) {
    const std::lock_guard<std::mutex> lock(from.mutex);
    from.balance -= amount;
    to.balance += amount;
    return;
  }
  const bool in_order = &from < &to;  // the same order for both: no deadlock
  const std::lock_guard<std::mutex> first((in_order ? from : to).mutex);
  const std::lock_guard<std::mutex> second((in_order ? to : from).mutex);
  from.balance -= amount;
  to.balance += amount;
}

uint64_t run(const kernels::Arguments& arguments) {
  const std::unique_ptr<Account> accounts[2] = {std::make_unique<Account>(),
                                                std::make_unique<Account>()};
  for (const auto& account : accounts) {
    TSOMON_ATOMIC_SET("accounts", account.get(), sizeof *account);
  }
  kernels::run_threads(arguments, 2, [&](uint32_t thread) {
    for (uint64_t round = 0; round < arguments.rounds; ++round) {
      arguments.pause();
      transfer(*accounts[thread], *accounts[1 - thread], 1 + thread, arguments.buggy);
    }
  });
  const int64_t expected = 2 * 1000;
  return static_cast<uint64_t>(std::abs(accounts[0]->balance + accounts[1]->balance - expected));
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::run_kernel(argc, argv, 1000, "money lost or made", run);
}
