// Units that need several locks at once and wait for them as std::scoped_lock does: several_locks [kept|torn] [ROUNDS]
// `torn`: another unit gives its lock back in its middle.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <tsomon.h>

namespace {

struct Account {
  std::mutex lock;
  long balance = 0;
};
Account accounts[4];

void two(unsigned from, unsigned to) {
  if (from == to) {
    return;
  }
  TSOMON_UNIT("two");
  const std::scoped_lock both(accounts[from].lock, accounts[to].lock);
  --accounts[from].balance;
  ++accounts[to].balance;
}

void three(unsigned first) {
  Account& a = accounts[first % 4];
  Account& b = accounts[(first + 1) % 4];
  Account& c = accounts[(first + 3) % 4];
  TSOMON_UNIT("three");
  const std::scoped_lock all(a.lock, b.lock, c.lock);
  a.balance -= 2;
  ++b.balance;
  ++c.balance;
}

void by_hand(unsigned from, unsigned to) {
  if (from == to) {
    return;
  }
  TSOMON_UNIT("by_hand");
  for (;;) {
    accounts[from].lock.lock();
    if (accounts[to].lock.try_lock()) {
      break;
    }
    accounts[from].lock.unlock();
    std::this_thread::yield();
  }
  --accounts[from].balance;
  ++accounts[to].balance;
  accounts[to].lock.unlock();
  accounts[from].lock.unlock();
}

// Looks without the second lock, and acts later.
void torn(unsigned from, unsigned to) {
  if (from == to) {
    return;
  }
  TSOMON_UNIT("torn");
  accounts[from].lock.lock();
  const long seen = accounts[from].balance;
  accounts[from].lock.unlock();
  std::this_thread::yield();
  const std::scoped_lock both(accounts[from].lock, accounts[to].lock);
  accounts[from].balance = seen - 1;
  ++accounts[to].balance;
}

}  // namespace

int main(int argc, char** argv) {
  const bool tears = argc > 1 && std::strcmp(argv[1], "torn") == 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3000;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([=] {
      unsigned random = i + 1;
      for (int round = 0; round < rounds; ++round) {
        random = random * 1103515245 + 12345;
        const unsigned from = (random >> 16) % 4;
        const unsigned to = (random >> 20) % 4;
        two(from, to);
        by_hand(to, from);
        if (round % 3 == 0) {
          three(random >> 24);
        }
        if (tears) {
          torn(from, to);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
