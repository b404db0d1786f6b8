// Programs that make it hard for whoever watches them. faults MODE, until SIGTERM:
//   storm     a thread forks as fast as it can; the children work and end at once
//   threads   1,000 threads, one unit in some of them is not atomic
//   exec      begins itself anew again and again, with the same number
//   crash     dies by SIGSEGV while it works, after a second
//   soak      two threads work without a pause; twenty times a second, at random moments, one unit comes into the midst of another
//   seldom    likewise, once a second, and what they do else concerns nobody
// It says how many units there were, and what they have summed up.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <tsomon.h>
#include <unistd.h>

namespace {

std::mutex lock;
int64_t balance = 0;
int64_t doubtful = 0;
std::atomic<int64_t> deposits{0};
std::atomic<bool> stop{false};

__attribute__((noinline)) void deposit() {
  TSOMON_UNIT("deposit");
  const std::lock_guard<std::mutex> guard(lock);
  ++balance;
  ++deposits;
}

__attribute__((noinline)) int64_t look() {
  const std::lock_guard<std::mutex> guard(lock);
  return doubtful;
}
__attribute__((noinline)) void put(int64_t value) {
  const std::lock_guard<std::mutex> guard(lock);
  doubtful = value;
}
__attribute__((noinline)) void torn() {
  TSOMON_UNIT("torn");
  const int64_t seen = look();
  usleep(200);
  put(seen + 1);
}

void serve(useconds_t pause) {
  while (!stop) {
    deposit();
    usleep(pause);
  }
}

int finish() {
  std::printf("%ld units, sum %ld\n", static_cast<long>(deposits.load()),
              static_cast<long>(balance));
  return deposits.load() == balance ? 0 : 1;
}

int storm() {
  std::thread first(serve, 20);
  std::thread second(serve, 20);
  int64_t children = 0;
  while (!stop) {
    const pid_t child = fork();
    if (child == 0) {
      // The lock may be another thread's for ever: children have a word of their own.
      TSOMON_UNIT("child");
      ++doubtful;
      _exit(doubtful == 1 ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::printf("a child ended with %d\n", status);
      return 1;
    }
    ++children;
  }
  first.join();
  second.join();
  std::printf("%ld children\n", static_cast<long>(children));
  return finish();
}

int many_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 1000; ++i) {
    threads.emplace_back([i] {
      while (!stop) {
        i % 100 == 0 ? torn() : deposit();
        usleep(i % 100 == 0 ? 500 : 50'000);
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  return finish();
}

int begin_anew(char** arguments) {
  const int64_t before = std::getenv("UNITS") != nullptr ? std::atol(std::getenv("UNITS")) : 0;
  balance = before;
  deposits = before;
  std::thread first(serve, 100);
  std::thread second(serve, 100);
  for (int i = 0; i < 70 && !stop; ++i) {
    usleep(10'000);
  }
  if (!stop) {
    // Other threads end with it.
    const std::lock_guard<std::mutex> guard(lock);
    setenv("UNITS", std::to_string(balance).c_str(), 1);
    execv("/proc/self/exe", arguments);
  }
  first.join();
  second.join();
  return finish();
}

int crash() {
  std::thread first(serve, 20);
  std::thread second(serve, 20);
  sleep(1);
  std::raise(SIGSEGV);
  return 0;
}

// The other thread's part of it: a whole unit while the first one is open.
std::atomic<int64_t> asked{0};
std::atomic<int64_t> answered{0};
__attribute__((noinline)) void come_between() {
  TSOMON_UNIT("come_between");
  put(look() + 1);
}
__attribute__((noinline)) void be_torn() {
  TSOMON_UNIT("be_torn");
  const int64_t seen = look();
  const int64_t number = ++asked;
  while (answered < number && !stop) {
  }
  put(seen + 1);
}

__attribute__((noinline)) void work_alone(std::vector<int64_t>& own) {
  TSOMON_UNIT("work_alone");
  for (size_t i = 1; i < own.size(); ++i) {
    own[i] += own[i - 1] + 1;
  }
}

int soak(bool alone) {
  using Clock = std::chrono::steady_clock;
  const auto work = [alone](std::vector<int64_t>& own) { alone ? work_alone(own) : deposit(); };
  std::thread second([&work] {
    std::vector<int64_t> own(64);
    for (int64_t done = 0; !stop;) {
      work(own);
      if (asked > done) {
        come_between();
        answered = ++done;
      }
    }
  });
  std::mt19937_64 random(1);
  std::exponential_distribution<double> pause(alone ? 1 : 20);
  std::vector<int64_t> own(64);
  while (!stop) {
    const auto next = Clock::now() + std::chrono::duration<double>(pause(random));
    while (Clock::now() < next && !stop) {
      work(own);
    }
    be_torn();
  }
  second.join();
  std::printf("%ld torn\n", static_cast<long>(answered.load()));
  return finish();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  std::signal(SIGTERM, [](int) { stop = true; });
  return mode == "storm"     ? storm()
         : mode == "threads" ? many_threads()
         : mode == "exec"    ? begin_anew(argv)
         : mode == "crash"   ? crash()
         : mode == "soak"    ? soak(false)
         : mode == "seldom"  ? soak(true)
                             : 2;
}
