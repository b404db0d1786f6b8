// Threads that can lock up, in runs that end well: deadlocks philosophers|inversion|libraries|upgrade
// |lost, and ordered|gated|tried|writers|predicate
//
// Threads take several locks each, in orders that form a circle. They do so one after another, as
// the first of them are long done when the others begin: the program ends. `tsomon predict` says
// that it need not.
//   philosophers  five threads, each takes the fork on its left and then the one on its right
//   inversion     two threads take two locks in opposite order
//   libraries     a cache calls a log while it holds its lock, the log calls back, and a third
//                 thread goes from one lock of the log to the cache: a circle of three threads
//   upgrade       two readers of a lock want to write without letting go of it
//   lost          a thread looks whether there is work, and then waits for a notification, which may
//                 have come in between
// Nothing can lock up in
//   ordered       philosophers, the last of whom takes the right fork first
//   gated         an inversion behind a lock that both take before
//   tried         an inversion one side of which gives up where it would have to wait
//   writers       two writers of that lock
//   predicate     the thread looks while it holds the mutex with which it waits

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <sanitizer/tsan_interface.h>

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

void try_other_way() {
  one_after_another({[] { eat(0, 1); },
                     [] {
                       const std::lock_guard<std::mutex> one(forks[1]);
                       if (forks[0].try_lock()) {
                         ++eaten;
                         forks[0].unlock();
                       }
                     }});
}

// Any number of readers or one writer. Readers may become the writer. What is recorded is what it
// says of itself (ThreadSanitizer's interface), not how it is made.
class UpgradableLock {
 public:
  void lock_shared() {
    __tsan_mutex_pre_lock(this, __tsan_mutex_read_lock);
    enter(kWriter - 1, 1);
    __tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0);
  }
  void unlock_shared() {
    __tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock);
    leave(1);
    __tsan_mutex_post_unlock(this, __tsan_mutex_read_lock);
  }
  void lock() { write_besides(0); }
  // The caller is a reader, and is one again after unlock().
  void upgrade() { write_besides(1); }
  void unlock() {
    __tsan_mutex_pre_unlock(this, 0);
    leave(kWriter);
    __tsan_mutex_post_unlock(this, 0);
  }

 private:
  static constexpr int kWriter = 1'000;

  void write_besides(int readers) {
    __tsan_mutex_pre_lock(this, 0);
    enter(readers, kWriter);
    __tsan_mutex_post_lock(this, 0, 0);
  }

  // As soon as there are no more than so many users.
  __attribute__((no_sanitize("thread"))) void enter(int most, int more) {
    for (;;) {
      int now = __atomic_load_n(&users_, __ATOMIC_SEQ_CST);
      if (now <= most && __atomic_compare_exchange_n(&users_, &now, now + more, false,
                                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return;
      }
      std::this_thread::yield();
    }
  }
  __attribute__((no_sanitize("thread"))) void leave(int less) {
    __atomic_fetch_sub(&users_, less, __ATOMIC_SEQ_CST);
  }

  int users_ = 0;  // a writer counts as kWriter
};

UpgradableLock table_lock;

void change_table(bool reads_first) {
  const auto change = [reads_first] {
    if (!reads_first) {
      table_lock.lock();
      ++eaten;
      table_lock.unlock();
      return;
    }
    table_lock.lock_shared();
    table_lock.upgrade();
    ++eaten;
    table_lock.unlock();
    table_lock.unlock_shared();
  };
  one_after_another({change, change});
}

std::mutex bell_lock;
std::condition_variable bell;
bool served = false;
std::atomic<bool> served_early{false};

// The guest is there first, and waits, in the run.
void serve(bool lost) {
  const auto guest = [lost] {
    if (lost) {
      if (!served_early) {
        std::unique_lock<std::mutex> held(bell_lock);
        bell.wait(held);
      }
      return;
    }
    std::unique_lock<std::mutex> held(bell_lock);
    bell.wait(held, [] { return served; });
  };
  const auto waiter = [lost] {
    if (lost) {
      served_early = true;
    } else {
      const std::lock_guard<std::mutex> held(bell_lock);
      served = true;
    }
    bell.notify_one();
  };
  one_after_another({guest, waiter});
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
  } else if (what == "tried") {
    try_other_way();
  } else if (what == "upgrade" || what == "writers") {
    change_table(what == "upgrade");
  } else if (what == "lost" || what == "predicate") {
    serve(what == "lost");
  } else {
    std::fprintf(stderr,
                 "deadlocks philosophers|inversion|libraries|upgrade|lost, or "
                 "ordered|gated|tried|writers|predicate\n");
    return 2;
  }
  std::puts("done");
  return 0;
}
