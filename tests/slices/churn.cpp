// A correct program that does all that may be in the way of switching: exceptions, signals whose handlers access memory,
// fork, libraries that come and go, threads that come and go. It ends by SIGTERM, or after half an hour.
// churn LIBRARY [torn]: with `torn` a unit in a thousand gives the lock back between a look and the act.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <tsomon.h>
#include <unistd.h>

namespace {

constexpr int kAccounts = 16;
std::mutex lock;
long balance[kAccounts];
std::atomic<bool> stop{false};
std::atomic<long> moved{0};
std::atomic<long> caught{0};
std::atomic<long> children{0};
std::atomic<long> loaded{0};
thread_local volatile long ticks[8];
thread_local long mine;
std::atomic<bool> ticked{false};

bool torn = false;

void on_signal(int) {
  for (volatile long& tick : ticks) {
    tick = tick + 1;
  }
  ticked.store(true, std::memory_order_relaxed);
}

__attribute__((noinline)) void move_some(int from, int to, long amount) {
  const std::lock_guard<std::mutex> guard(lock);
  balance[from] -= amount;
  balance[to] += amount;
  mine += amount;
  if (amount % 7 == 0) {
    throw std::runtime_error("seven");
  }
}

__attribute__((noinline)) long look(int account) {
  const std::lock_guard<std::mutex> guard(lock);
  return balance[account];
}

__attribute__((noinline)) void put(int account, long value) {
  const std::lock_guard<std::mutex> guard(lock);
  balance[account] = value;
}

__attribute__((noinline)) long deep(int level) {
  volatile long local = level;
  return level == 0 ? local : local + deep(level - 1);
}

void work(unsigned seed) {
  while (!stop.load(std::memory_order_relaxed)) {
    seed = seed * 1103515245 + 12345;
    const unsigned random = seed >> 16;
    TSOMON_UNIT("move");
    if (torn && random % 1000 == 0) {
      const long seen = look(0);
      usleep(200);
      put(0, seen);
      continue;
    }
    try {
      move_some(random % kAccounts, (random / kAccounts) % kAccounts, random % 50);
    } catch (const std::runtime_error&) {
      ++caught;
    }
    if (deep(3) != 6) {
      std::abort();
    }
    ++moved;
  }
}

void fork_again() {
  while (!stop.load()) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 100; ++i) {
        mine += deep(2);
      }
      _exit(mine % 3 == 0 ? 0 : 1);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && status != 0) {
      std::printf("a child ended with %d\n", status);
      std::exit(1);
    }
    ++children;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void load_again(const char* path) {
  while (!stop.load()) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::puts(dlerror());
      std::exit(1);
    }
    const auto twice = reinterpret_cast<long (*)(long)>(dlsym(library, "twice"));
    if (twice == nullptr || twice(21) != 42) {
      std::puts("the library is wrong");
      std::exit(1);
    }
    dlclose(library);
    ++loaded;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void start_again() {
  while (!stop.load()) {
    std::thread joined([] { move_some(1, 2, 1); });
    std::thread([] { move_some(2, 1, 1); }).detach();
    joined.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

int main(int argc, char** argv) {
  torn = argc > 2 && std::strcmp(argv[2], "torn") == 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  action.sa_handler = [](int) { stop.store(true); };
  sigaction(SIGTERM, &action, nullptr);
  const itimerval every{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 5; ++i) {
    threads.emplace_back(work, i + 1);
  }
  threads.emplace_back(fork_again);
  threads.emplace_back(load_again, argv[1]);
  threads.emplace_back(start_again);
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(30);
  while (!stop && std::chrono::steady_clock::now() < until) {
    usleep(10000);
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // detached ones
  long sum = 0;
  for (const long each : balance) {
    sum += torn ? 0 : each;
  }
  std::printf("sum %ld, moved %s, caught %s, children %s, loaded %s, ticks %s\n", sum,
              moved > 0 ? "some" : "none", caught > 0 ? "some" : "none",
              children > 0 ? "some" : "none", loaded > 0 ? "some" : "none",
              ticked ? "some" : "none");
  return 0;
}
