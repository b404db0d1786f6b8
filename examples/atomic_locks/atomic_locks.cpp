// Two threads count in units that a lock guards. The lock is made of atomics: which thread came
// first the monitor can only know from the values that they read.
//
//   atomic_locks [LOCK [UNITS [whole]]]
//
// whole: units begin before their thread has the lock and end after it has given it back, as functions
// do. LOCK: flag, test_and_set, test_and_test_and_set, compare_exchange, semaphore, ticket, mcs, clh,
// peterson, dekker, or none, which loses counts.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

#include "tsomon.h"

namespace {

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kRelaxed = std::memory_order_relaxed;

void pause() { __builtin_ia32_pause(); }

struct None {
  void enter(int) {}
  void leave(int) {}
};

struct Flag {  // without a pause
  std::atomic_flag taken;
  void enter(int) {
    while (taken.test_and_set(kAcquire)) {
    }
  }
  void leave(int) { taken.clear(kRelease); }
};

struct TestAndSet {
  std::atomic<bool> taken{false};
  void enter(int) {
    while (taken.exchange(true, kAcquire)) {
      pause();
    }
  }
  void leave(int) { taken.store(false, kRelease); }
};

struct TestAndTestAndSet {
  std::atomic<int> taken{0};
  void enter(int) {
    while (taken.load(kRelaxed) != 0 || taken.exchange(1, kAcquire) != 0) {
      pause();
    }
  }
  void leave(int) { taken.store(0, kRelease); }
};

struct CompareExchange {
  std::atomic<int> taken{0};
  void enter(int) {
    for (int free = 0; !taken.compare_exchange_weak(free, 1, kAcquire); free = 0) {
      pause();
    }
  }
  void leave(int) { taken.store(0, kRelease); }
};

struct Semaphore {
  std::atomic<int> count{1};
  void enter(int) {
    for (int now = count.load(); now == 0 || !count.compare_exchange_weak(now, now - 1);
         now = count.load()) {
      pause();
    }
  }
  void leave(int) { count.fetch_add(1); }
};

struct Ticket {
  std::atomic<unsigned> next{0};
  std::atomic<unsigned> served{0};
  void enter(int) {
    const unsigned mine = next.fetch_add(1);
    while (served.load(kAcquire) != mine) {
      pause();
    }
  }
  void leave(int) { served.store(served.load(kRelaxed) + 1, kRelease); }
};

// Mellor-Crummey and Scott, 1991.
struct Mcs {
  struct Waiter {
    std::atomic<Waiter*> next{nullptr};
    std::atomic<bool> waits{false};
  };
  std::atomic<Waiter*> last{nullptr};
  Waiter waiters[2];
  void enter(int me) {
    Waiter& mine = waiters[me];
    mine.next.store(nullptr, kRelaxed);
    mine.waits.store(true, kRelaxed);
    if (Waiter* const before = last.exchange(&mine); before != nullptr) {
      before->next.store(&mine, kRelease);
      while (mine.waits.load(kAcquire)) {
        pause();
      }
    }
  }
  void leave(int me) {
    Waiter& mine = waiters[me];
    Waiter* next = mine.next.load(kAcquire);
    if (Waiter* expected = &mine; next == nullptr) {
      if (last.compare_exchange_strong(expected, nullptr)) {
        return;
      }
      while ((next = mine.next.load(kAcquire)) == nullptr) {
        pause();
      }
    }
    next->waits.store(false, kRelease);
  }
};

// Craig 1993; Landin and Hagersten 1994.
struct Clh {
  std::atomic<bool> places[3] = {};
  std::atomic<std::atomic<bool>*> last{&places[2]};
  std::atomic<bool>* mine[2] = {&places[0], &places[1]};
  std::atomic<bool>* before[2] = {};
  void enter(int me) {
    mine[me]->store(true, kRelaxed);
    before[me] = last.exchange(mine[me]);
    while (before[me]->load(kAcquire)) {
      pause();
    }
  }
  void leave(int me) {
    std::atomic<bool>* const left = mine[me];
    mine[me] = before[me];
    left->store(false, kRelease);
  }
};

struct Peterson {
  std::atomic<int> wants[2] = {};
  std::atomic<int> turn{0};
  void enter(int me) {
    wants[me].store(1, kRelaxed);
    turn.store(1 - me, kRelaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    while (wants[1 - me].load(kRelaxed) != 0 && turn.load(kRelaxed) == 1 - me) {
      pause();
    }
  }
  void leave(int me) { wants[me].store(0, kRelease); }
};

struct Dekker {
  std::atomic<int> wants[2] = {};
  std::atomic<int> turn{0};
  void enter(int me) {
    wants[me].store(1);
    while (wants[1 - me].load() != 0) {
      if (turn.load() != me) {
        wants[me].store(0);
        while (turn.load() != me) {
          pause();
        }
        wants[me].store(1);
      }
    }
  }
  void leave(int me) {
    turn.store(1 - me, kRelease);
    wants[me].store(0, kRelease);
  }
};

template <typename Lock>
int count(long units, bool whole) {
  static Lock lock;
  static volatile long counter = 0;
  static std::atomic<int> ready{0};
  const auto work = [units, whole](int me) {
    ready.fetch_add(1);
    while (ready.load() != 2) {
    }
    for (long i = 0; i < units; ++i) {
      if (whole) {
        TSOMON_UNIT("count");
        lock.enter(me);
        counter = counter + 1;
        lock.leave(me);
        continue;
      }
      lock.enter(me);
      {
        TSOMON_UNIT("count");
        counter = counter + 1;
      }
      lock.leave(me);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  std::printf("%ld of %ld counted\n", static_cast<long>(counter), 2 * units);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const struct {
    const char* name;
    int (*run)(long, bool);
  } locks[] = {{"flag", count<Flag>},
               {"test_and_set", count<TestAndSet>},
               {"test_and_test_and_set", count<TestAndTestAndSet>},
               {"compare_exchange", count<CompareExchange>},
               {"semaphore", count<Semaphore>},
               {"ticket", count<Ticket>},
               {"mcs", count<Mcs>},
               {"clh", count<Clh>},
               {"peterson", count<Peterson>},
               {"dekker", count<Dekker>},
               {"none", count<None>}};
  const char* const wanted = argc > 1 ? argv[1] : "test_and_set";
  const long units = argc > 2 ? std::atol(argv[2]) : 2'000;
  const auto* const lock = std::find_if(std::begin(locks), std::end(locks), [&](const auto& one) {
    return std::strcmp(one.name, wanted) == 0;
  });
  if (lock == std::end(locks)) {
    std::fprintf(stderr, "atomic_locks: no lock %s\n", wanted);
    return 2;
  }
  return lock->run(units, argc > 3 && std::strcmp(argv[3], "whole") == 0);
}
