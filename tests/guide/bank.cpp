// ./bank of docs/guide/record.md: accounts that are objects, and data that is declared by its name.
#include <cstdint>
#include <thread>

#include "tsomon.h"

namespace bank {
int64_t total = 0;
int64_t rates[2] = {1, 2};
}  // namespace bank

class Account {
 public:
  __attribute__((noinline)) void deposit(int64_t amount) {
    balance_ = balance_ + amount;
    ++deposits_;
  }

 private:
  volatile int64_t balance_ = 0;
  volatile int64_t deposits_ = 0;
};

int main() {
  auto* const account = new Account;
  const auto work = [account] {
    for (int i = 0; i < 100; ++i) {
      account->deposit(1);
      std::this_thread::yield();
      bank::total += bank::rates[i % 2];
    }
  };
  std::thread first(work);
  std::thread second(work);
  first.join();
  second.join();
  delete account;
}
