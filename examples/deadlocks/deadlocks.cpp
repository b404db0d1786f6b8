// Locks in circles: deadlocks philosophers|inversion|libraries|ordered|gated
//
// Threads take several locks each, in orders that form a circle. They do so one after another, as
// the first of them are long done when the others begin: the program ends. `tsomon predict` says
// that it need not.
//   philosophers  five threads, each takes the fork on its left and then the one on its right
//   inversion     two threads take two locks in opposite order
//   libraries     a cache calls a log while it holds its lock, the log calls back, and a third
//                 thread goes from one lock of the log to the cache: a circle of three threads
// Nothing can lock up in
//   ordered       philosophers, the last of whom takes the right fork first
//   gated         an inversion behind a lock that both take before

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Work = std::function<void()>;

// Nobody joins or starts another one in between: nothing but time keeps them apart. All are there
// before the first one ends: what it leaves in memory would be given to a later one, which then
// comes after it in every schedule.
void one_after_another(const std::vector<Work>& works) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < works.size(); ++i) {
    threads.emplace_back([i, &work = works[i]] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * (i + 1)));
      work();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::array<std::mutex, 5> forks;
std::atomic<uint64_t> eaten{0};

void eat(size_t first, size_t second) {
  const std::lock_guard<std::mutex> one(forks[first]);
  const std::lock_guard<std::mutex> other(forks[second]);
  ++eaten;
}

void dine(bool ordered) {
  std::vector<Work> philosophers;
  for (size_t i = 0; i < forks.size(); ++i) {
    const size_t next = (i + 1) % forks.size();
    philosophers.emplace_back(
        [=] { ordered ? eat(std::min(i, next), std::max(i, next)) : eat(i, next); });
  }
  one_after_another(philosophers);
}

std::mutex gate;

void invert(bool gated) {
  const auto take = [gated](size_t first, size_t second) {
    std::unique_lock<std::mutex> both(gate, std::defer_lock);
    if (gated) {
      both.lock();
    }
    eat(first, second);
  };
  one_after_another({[=] { take(0, 1); }, [=] { take(1, 0); }});
}

// Two libraries that do not know each other's locks.
namespace cache {
std::mutex lock;
std::function<void()> on_miss;

void find() {
  const std::lock_guard<std::mutex> held(lock);
  on_miss();
}
void drop() { const std::lock_guard<std::mutex> held(lock); }
}  // namespace cache

namespace journal {
std::mutex lines_lock;
std::mutex file_lock;
std::function<void()> on_full;

void add_line() { const std::lock_guard<std::mutex> held(lines_lock); }
void flush() {
  const std::lock_guard<std::mutex> held(lines_lock);
  const std::lock_guard<std::mutex> file(file_lock);
}
void rotate() {
  const std::lock_guard<std::mutex> file(file_lock);
  on_full();
}
}  // namespace journal

void use_libraries() {
  cache::on_miss = journal::add_line;
  journal::on_full = cache::drop;
  one_after_another({cache::find, journal::flush, journal::rotate});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "philosophers" || what == "ordered") {
    dine(what == "ordered");
  } else if (what == "inversion" || what == "gated") {
    invert(what == "gated");
  } else if (what == "libraries") {
    use_libraries();
  } else {
    std::fprintf(stderr, "deadlocks philosophers|inversion|libraries|ordered|gated\n");
    return 2;
  }
  std::puts("done");
  return 0;
}
