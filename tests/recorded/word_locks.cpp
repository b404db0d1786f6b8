// Correct: four threads, whose units take locks that are made of atomic words. Argument: which.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <tsomon.h>

namespace {

long total = 0;
long part[3];
std::atomic<int> word{0};
std::atomic<bool> flag{false};
std::atomic<unsigned> next_ticket{0};
std::atomic<unsigned> serving{0};

void add(int i) {
  total = total + 1;
  part[i % 3] = part[i % 3] + 1;
  if (total != part[0] + part[1] + part[2]) {
    std::abort();
  }
}

void tested_first(int, int i) {
  TSOMON_UNIT("unit");
  do {
    while (word.load(std::memory_order_relaxed) != 0) {
      std::this_thread::yield();
    }
  } while (word.exchange(1, std::memory_order_acquire) != 0);
  add(i);
  word.store(0, std::memory_order_release);
}

void compared(int, int i) {
  TSOMON_UNIT("unit");
  for (bool free = false; !flag.compare_exchange_weak(free, true); free = false) {
    std::this_thread::yield();
  }
  add(i);
  flag.store(false, std::memory_order_release);
}

void owner(int thread, int i) {
  TSOMON_UNIT("unit");
  for (int free = 0; !word.compare_exchange_strong(free, thread + 1); free = 0) {
    std::this_thread::yield();
  }
  add(i);
  word.store(0, std::memory_order_release);
}

void bit(int, int i) {
  TSOMON_UNIT("unit");
  while ((word.fetch_or(1) & 1) != 0) {
    std::this_thread::yield();
  }
  add(i);
  word.fetch_and(~1);
}

void ticket(int, int i) {
  TSOMON_UNIT("unit");
  const unsigned mine = next_ticket.fetch_add(1);
  while (serving.load() != mine) {
    std::this_thread::yield();
  }
  add(i);
  serving.store(mine + 1);
}

void both(int thread, int i) {
  TSOMON_UNIT("unit");
  while (word.exchange(1) != 0) {
    std::this_thread::yield();
  }
  compared(thread, i);
  word.store(0);
}

}  // namespace

int main(int, char** argv) {
  const std::map<std::string, std::function<void(int, int)>> all = {{"tested_first", tested_first},
                                                                    {"compared", compared},
                                                                    {"owner", owner},
                                                                    {"bit", bit},
                                                                    {"ticket", ticket},
                                                                    {"both", both}};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200; ++i) {
        all.at(argv[1])(thread, i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
