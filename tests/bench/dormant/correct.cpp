// Correct programs that sleep between their units, so that many can be watched at a time: correct KIND [LIBRARY]. Each unit of
// each kind can be taken for one step, whatever the schedule. Ends by SIGTERM.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <tsomon.h>
#include <unistd.h>

namespace {

constexpr int kThreads = 3;
constexpr int kCells = 16;
std::atomic<bool> stop{false};

struct Random {
  unsigned state;
  unsigned next() {
    state = state * 1103515245 + 12345;
    return state >> 16;
  }
};

void rest() { usleep(300); }

[[noreturn]] void fail(const char* what) {
  std::printf("wrong: %s\n", what);
  std::abort();
}

// Transfers, under the locks of both accounts.
struct Account {
  std::mutex lock;
  long balance = 100;
};
Account accounts[kCells];

__attribute__((noinline)) void transfer(unsigned from, unsigned to, long amount) {
  if (from == to) {
    return;
  }
  TSOMON_UNIT("transfer");
  const std::scoped_lock both(accounts[from].lock, accounts[to].lock);
  accounts[from].balance -= amount;
  accounts[to].balance += amount;
}

void transfers(Random random) {
  while (!stop) {
    transfer(random.next() % kCells, random.next() % kCells, random.next() % 9);
    rest();
  }
}

// A table that many read and few change.
std::shared_mutex table_lock;
std::map<int, long> table;

__attribute__((noinline)) void change_table(int key) {
  TSOMON_UNIT("change");
  const std::unique_lock guard(table_lock);
  ++table[key];
  ++table[key + kCells];
}

__attribute__((noinline)) void read_table() {
  TSOMON_UNIT("read");
  const std::shared_lock guard(table_lock);
  long sum = 0;
  for (const auto& [key, value] : table) {
    sum += key < kCells ? value : -value;
  }
  if (sum != 0) {
    fail("the table");
  }
}

void tables(Random random) {
  while (!stop) {
    if (random.next() % 4 == 0) {
      change_table(random.next() % kCells);
    } else {
      read_table();
    }
    rest();
  }
}

// Locks of one's own; the unit is what they keep apart.
struct SpinLock {
  std::atomic<bool> taken{false};
  void lock() {
    while (taken.exchange(true, std::memory_order_acquire)) {
      usleep(1);
    }
  }
  void unlock() { taken.store(false, std::memory_order_release); }
};

struct TicketLock {
  std::atomic<unsigned> next{0};
  std::atomic<unsigned> now{0};
  void lock() {
    const unsigned mine = next.fetch_add(1);
    while (now.load(std::memory_order_acquire) != mine) {
      usleep(1);
    }
  }
  void unlock() { now.store(now.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};

// Peterson's, for two threads.
struct TwoLock {
  std::atomic<int> wants[2]{0, 0};
  std::atomic<int> turn{0};
  void lock(int me) {
    wants[me].store(1, std::memory_order_seq_cst);
    turn.store(1 - me, std::memory_order_seq_cst);
    while (wants[1 - me].load() != 0 && turn.load() == 1 - me) {
      usleep(1);
    }
  }
  void unlock(int me) { wants[me].store(0, std::memory_order_release); }
};

long cells[kCells];

__attribute__((noinline)) void swap_cells(unsigned one, unsigned other) {
  TSOMON_UNIT("swap");
  const long kept = cells[one];
  cells[one] = cells[other];
  cells[other] = kept;
}

template <typename Lock>
void swaps(Random random) {
  static Lock lock;
  while (!stop) {
    lock.lock();
    swap_cells(random.next() % kCells, random.next() % kCells);
    lock.unlock();
    rest();
  }
}

void two_swap(Random random) {
  static TwoLock lock;
  static std::atomic<int> threads{0};
  const int me = threads++;
  while (!stop && me < 2) {
    lock.lock(me);
    swap_cells(random.next() % kCells, random.next() % kCells);
    lock.unlock(me);
    rest();
  }
}

// A sequence lock: a reader that a writer has come between gives its unit up.
std::mutex writers;
std::atomic<unsigned> sequence{0};
std::atomic<long> pair[2];

__attribute__((noinline)) void write_pair() {
  TSOMON_UNIT("write");
  const std::lock_guard guard(writers);
  const unsigned now = sequence.load(std::memory_order_relaxed);
  sequence.store(now + 1, std::memory_order_release);
  const long value = pair[0].load(std::memory_order_relaxed) + 1;
  pair[0].store(value, std::memory_order_release);
  pair[1].store(value, std::memory_order_release);
  sequence.store(now + 2, std::memory_order_release);
}

__attribute__((noinline)) bool read_pair() {
  TSOMON_UNIT("read");
  const unsigned before = sequence.load(std::memory_order_acquire);
  const long first = pair[0].load(std::memory_order_acquire);
  const long second = pair[1].load(std::memory_order_acquire);
  if (before % 2 != 0 || sequence.load(std::memory_order_acquire) != before) {
    TSOMON_UNIT_CANCEL();
    return false;
  }
  if (first != second) {
    fail("the pair");
  }
  return true;
}

void pairs(Random random) {
  while (!stop) {
    if (random.next() % 4 == 0) {
      write_pair();
    } else {
      while (!read_pair()) {
      }
    }
    rest();
  }
}

// Versions that are never changed once they can be seen.
struct Version {
  long first;
  long second;
};
std::atomic<Version*> latest{new Version{0, 0}};

__attribute__((noinline)) void publish() {
  TSOMON_UNIT("publish");
  const std::lock_guard guard(writers);
  const Version* const old = latest.load(std::memory_order_relaxed);
  latest.store(new Version{old->first + 1, old->second + 1}, std::memory_order_release);
}

__attribute__((noinline)) void read_latest() {
  TSOMON_UNIT("read");
  const Version* const seen = latest.load(std::memory_order_acquire);
  if (seen->first != seen->second) {
    fail("the version");
  }
}

void versions(Random random) {
  while (!stop) {
    if (random.next() % 4 == 0) {
      publish();
    } else {
      read_latest();
    }
    rest();
  }
}

// A bounded buffer; a unit begins when there is something to do.
std::mutex buffer_lock;
std::condition_variable changed;
std::vector<long> buffer;
long put_in = 0;
long taken_out = 0;

__attribute__((noinline)) void put_one() {
  TSOMON_UNIT("put");
  buffer.push_back(++put_in);
}

__attribute__((noinline)) void take_one() {
  TSOMON_UNIT("take");
  buffer.pop_back();
  ++taken_out;
}

void buffers(Random) {
  static std::atomic<int> threads{0};
  const bool puts = threads++ % 2 == 0;
  const auto ready = [&] { return stop || (puts ? buffer.size() < kCells : !buffer.empty()); };
  while (!stop) {
    {
      std::unique_lock guard(buffer_lock);
      if (changed.wait_for(guard, std::chrono::milliseconds(2), ready) && !stop) {
        if (puts) {
          put_one();
        } else {
          take_one();
        }
        changed.notify_all();
      }
    }
    rest();
  }
}

// Threads that come and go.
void comers(Random random) {
  while (!stop) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([seed = random.next()] {
        Random its{seed};
        for (int j = 0; j < 3; ++j) {
          transfer(its.next() % kCells, its.next() % kCells, 1);
        }
      });
    }
    transfer(random.next() % kCells, random.next() % kCells, 1);
    for (std::thread& each : threads) {
      each.join();
    }
    rest();
  }
}

// Signals at any moment, whose handler has memory of its own thread.
thread_local volatile long ticks[4];

void signals(Random random) {
  while (!stop) {
    for (int i = 0; i < 50; ++i) {
      transfer(random.next() % kCells, random.next() % kCells, 1);
    }
    rest();
  }
}

// Libraries that come and go.
const char* library_path = "";

void libraries(Random random) {
  static std::atomic<int> threads{0};
  const bool loads = threads++ == 0;
  while (!stop) {
    if (loads) {
      void* const library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
      const auto twice =
          library == nullptr ? nullptr : reinterpret_cast<long (*)(long)>(dlsym(library, "twice"));
      if (twice == nullptr || twice(21) != 42) {
        fail("the library");
      }
      dlclose(library);
    }
    transfer(random.next() % kCells, random.next() % kCells, 1);
    rest();
  }
}

// Rounds: everybody writes a cell of its own, then everybody reads all.
std::barrier together(kThreads);

__attribute__((noinline)) void write_own(int me, long round) {
  TSOMON_UNIT("write");
  cells[2 * me] = round;
  cells[2 * me + 1] = -round;
}

__attribute__((noinline)) void read_all(long round) {
  TSOMON_UNIT("read");
  long sum = 0;
  for (int i = 0; i < 2 * kThreads; i += 2) {
    sum += cells[i];
  }
  if (sum != kThreads * round) {
    fail("the round");
  }
}

void rounds(Random) {
  static std::atomic<int> threads{0};
  static std::atomic<bool> last{false};  // written between the barriers, so all see the same
  const int me = threads++;
  for (long round = 1; !last; ++round) {
    write_own(me, round);
    together.arrive_and_wait();
    read_all(round);
    rest();
    if (me == 0) {
      last = stop.load();
    }
    together.arrive_and_wait();
  }
}

// What is made once, by whoever comes first, and locks that one thread takes twice.
std::recursive_mutex nested;

__attribute__((noinline)) void add_twice(unsigned cell) {
  const std::lock_guard guard(nested);
  ++cells[cell];
}

__attribute__((noinline)) void add_nested(unsigned one, unsigned other) {
  TSOMON_UNIT("add");
  const std::lock_guard guard(nested);
  add_twice(one);
  add_twice(other);
}

void nestings(Random random) {
  while (!stop) {
    add_nested(random.next() % kCells, random.next() % kCells);
    rest();
  }
}

struct Kind {
  const char* name;
  void (*work)(Random);
};
constexpr Kind kKinds[] = {{"transfers", transfers},
                           {"table", tables},
                           {"spin-lock", swaps<SpinLock>},
                           {"ticket-lock", swaps<TicketLock>},
                           {"peterson", two_swap},
                           {"sequence-lock", pairs},
                           {"versions", versions},
                           {"buffer", buffers},
                           {"threads", comers},
                           {"signals", signals},
                           {"libraries", libraries},
                           {"rounds", rounds},
                           {"nested", nestings}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const Kind& kind : kKinds) {
      std::puts(kind.name);
    }
    return 0;
  }
  library_path = argc > 2 ? argv[2] : "";
  struct sigaction action {};
  action.sa_handler = [](int) { stop = true; };
  sigaction(SIGTERM, &action, nullptr);
  if (std::strcmp(argv[1], "signals") == 0) {
    action.sa_handler = [](int) {
      for (volatile long& tick : ticks) {
        tick = tick + 1;
      }
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  std::vector<std::thread> threads;
  for (const Kind& kind : kKinds) {
    for (unsigned i = 0; i < kThreads && std::strcmp(argv[1], kind.name) == 0; ++i) {
      threads.emplace_back(kind.work, Random{i + 1});
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return threads.empty() ? 2 : 0;
}
