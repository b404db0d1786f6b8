// What happens at the very beginning and the very end of threads: thread_edges WAY. Prints how many
// read-modify-writes `count` saw.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

std::atomic<uint64_t> count{0};

constexpr int kThreads = 300;
constexpr int kKeys = 40;

void on_signal(int) { count.fetch_add(1); }

bool blocks(const sigset_t& set, int number) { return sigismember(&set, number) == 1; }
sigset_t mask_now() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return mask;
}

void* return_mask(void* mask) {
  *static_cast<sigset_t*>(mask) = mask_now();
  return nullptr;
}

// Each thread gets a signal as early as can be. Its mask is what it would be without the probe.
void signals(const pthread_attr_t* attributes, int blocked, int open) {
  signal(SIGUSR1, on_signal);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &mask, nullptr);
  bool right = true;
  for (int i = 0; i < kThreads; ++i) {
    pthread_t thread{};
    sigset_t seen;
    if (pthread_create(&thread, attributes, return_mask, &seen) != 0) {
      right = false;
      continue;
    }
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, nullptr);
    right = right && !blocks(seen, SIGUSR1) && blocks(seen, blocked) && !blocks(seen, open);
  }
  right = right && !blocks(mask_now(), SIGUSR1) && blocks(mask_now(), SIGUSR2) &&
          !blocks(mask_now(), SIGHUP);
  std::printf("masks_right %d\n", right ? 1 : 0);
}

// Attributes with a signal mask, and what else they can have.
char stack[1 << 20];
void* look_at_attributes(void* right) {
  pthread_attr_t own;
  pthread_getattr_np(pthread_self(), &own);
  void* base = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&own, &base, &size);
  int detached = 0;
  pthread_attr_getdetachstate(&own, &detached);
  pthread_attr_destroy(&own);
  cpu_set_t processors;
  sched_getaffinity(0, sizeof processors, &processors);
  *static_cast<bool*>(right) = base == stack && size == sizeof stack &&
                               detached == PTHREAD_CREATE_JOINABLE && CPU_COUNT(&processors) == 1 &&
                               blocks(mask_now(), SIGHUP);
  return nullptr;
}

void attributes() {
  pthread_attr_t given;
  pthread_attr_init(&given);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGHUP);
  pthread_attr_setsigmask_np(&given, &mask);
  signals(&given, SIGHUP, SIGUSR2);

  cpu_set_t processors;
  sched_getaffinity(0, sizeof processors, &processors);
  const int available = CPU_COUNT(&processors);
  int first = 0;
  while (!CPU_ISSET(first, &processors)) {
    ++first;
  }
  CPU_ZERO(&processors);
  CPU_SET(first, &processors);
  pthread_attr_setaffinity_np(&given, sizeof processors, &processors);
  pthread_attr_setstack(&given, stack, sizeof stack);
  pthread_t thread{};
  bool right = false;
  if (pthread_create(&thread, &given, look_at_attributes, &right) == 0) {
    pthread_join(thread, nullptr);
  }
  sched_getaffinity(0, sizeof processors, &processors);
  std::printf("attributes_right %d\n", right && CPU_COUNT(&processors) == available ? 1 : 0);
  pthread_attr_destroy(&given);
}

struct Local {
  int used = 0;
  ~Local() { count.fetch_add(1); }
};
thread_local Local of_thread;
pthread_key_t keys[kKeys];
pthread_key_t again;  // is set in each round

void in_round(void* round) {
  count.fetch_add(1);
  pthread_setspecific(again, static_cast<char*>(round) + 1);
}

void destructors(int wanted) {
  for (int i = 0; i < wanted; ++i) {
    pthread_key_create(&keys[i], nullptr);
  }
  pthread_key_create(&again, in_round);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread{};
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          of_thread.used = 1;
          pthread_setspecific(again, &count);
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  }
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  if (std::strcmp(way, "signals") == 0) {
    signals(nullptr, SIGUSR2, SIGHUP);
  } else if (std::strcmp(way, "attributes") == 0) {
    attributes();
  } else if (std::strcmp(way, "destructors") == 0) {
    destructors(0);
  } else if (std::strcmp(way, "many_keys") == 0) {
    destructors(kKeys);
  }
  std::printf("count %llu\n", static_cast<unsigned long long>(count.load()));
}
