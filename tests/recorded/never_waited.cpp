// Correct but for `array`: two threads, whose units wait for one another in loops, and never had to. Argument: how.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <tsomon.h>

namespace {

constexpr int kUnits = 20;
long total = 0;
long part[2];

void add(int i) {
  total = total + 1;
  part[i % 2] = part[i % 2] + 1;
  if (total != part[0] + part[1]) {
    std::abort();
  }
}

std::atomic<unsigned> next_ticket{0};
std::atomic<unsigned> serving{0};
void ticket(int, int i) {
  TSOMON_UNIT("unit");
  const unsigned mine = next_ticket.fetch_add(1);
  while (serving.load() != mine) {
    std::this_thread::yield();
  }
  add(i);
  serving.store(mine + 1);
}

struct Cell {
  std::atomic<bool> held{false};
};
Cell cells[3];
std::atomic<Cell*> last{&cells[2]};
Cell* own[2] = {&cells[0], &cells[1]};
void queued(int thread, int i) {
  TSOMON_UNIT("unit");
  Cell* const mine = own[thread];
  mine->held.store(true);
  Cell* const before = last.exchange(mine);
  while (before->held.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
  add(i);
  own[thread] = before;
  mine->held.store(false, std::memory_order_release);
}

std::atomic<bool> turns[4] = {true};
std::atomic<unsigned> place{0};
void slots(int, int i) {
  TSOMON_UNIT("unit");
  const unsigned mine = place.fetch_add(1) % 4;
  for (int looks = 0; !turns[mine].load(); ++looks) {
    if (looks > 10) {
      std::this_thread::yield();
    }
  }
  turns[mine].store(false);
  add(i);
  turns[(mine + 1) % 4].store(true);
}

// What is looked at is another one each time: nobody waits.
std::array<std::atomic<int>, 4> words{};
void array(int thread, int i) {
  TSOMON_UNIT("unit");
  if (thread == 0) {
    for (std::atomic<int>& word : words) {
      word.store(i + 1);
    }
  } else {
    for (const std::atomic<int>& word : words) {
      if (word.load() == 0) {
        return;
      }
    }
  }
}

}  // namespace

int main(int, char** argv) {
  const std::map<std::string, std::function<void(int, int)>> all = {
      {"ticket", ticket}, {"queued", queued}, {"slots", slots}, {"array", array}};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      // One after the other, as it happens: nothing says so.
      std::this_thread::sleep_for(std::chrono::milliseconds(1 + 150 * thread));
      for (int i = 0; i < kUnits; ++i) {
        all.at(argv[1])(thread, i);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
