// What store buffers break, small enough for every execution: which fence is missing.
//
//   explore_fences store_buffering | task_pool | hazard_pointer | event_count, each also
//   NAME_fenced
//
// The programs in examples/ show the same while they run. `tsomon explain --explore` proposes the
// fence that the fenced twin has, and shows that it helps.
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <cstring>
#include <thread>

#include <tsomon.h>

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcquire = std::memory_order_acquire;

template <bool kFenced>
void fence() {
  if constexpr (kFenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void run_both(void (*one)(), void (*other)()) {
  std::thread first(one);
  std::thread second(other);
  first.join();
  second.join();
}

std::atomic<int> x{0};
std::atomic<int> y{0};
int seen[2];

template <bool kFenced>
void store_buffering() {
  run_both(
      [] {
        x.store(1, kRelaxed);
        fence<kFenced>();
        seen[0] = y.load(kRelaxed);
      },
      [] {
        y.store(1, kRelaxed);
        fence<kFenced>();
        seen[1] = x.load(kRelaxed);
      });
  assert(seen[0] == 1 || seen[1] == 1);
}

// A pool with one task: one thread takes from the head, one from the tail. The claim is not part of
// the unit.
std::atomic<int> head{0};
std::atomic<int> tail{1};
std::atomic<int> owner{0};
bool took[2];

template <bool kFenced>
void task_pool() {
  run_both(
      [] {
        head.store(1, kRelaxed);
        fence<kFenced>();
        TSOMON_UNIT("take");
        if (tail.load(kRelaxed) > 0) {
          owner.store(1, kRelease);
          took[0] = true;
        }
      },
      [] {
        tail.store(0, kRelaxed);
        fence<kFenced>();
        TSOMON_UNIT("take");
        if (head.load(kRelaxed) <= 0) {
          owner.store(2, kRelease);
          took[1] = true;
        }
      });
  assert(!took[0] || !took[1]);
}

// A reader announces the node that it is about to use, and looks whether it is still the current
// one. The exchange of the other thread is locked.
std::atomic<int> current{1};
std::atomic<int> hazard{0};
bool in_use;
bool reclaimed;

template <bool kFenced>
void hazard_pointer() {
  run_both(
      [] {
        hazard.store(1, kRelease);
        fence<kFenced>();
        in_use = current.load(kAcquire) == 1;
      },
      [] {
        current.exchange(2);
        reclaimed = hazard.load(kAcquire) != 1;
      });
  assert(!in_use || !reclaimed);
}

// A producer publishes an item and looks whether the consumer sleeps; it announces its sleep and
// looks for items.
std::atomic<int> published{0};
std::atomic<int> asleep{0};
bool woken;
bool sleeps;

template <bool kFenced>
void event_count() {
  run_both(
      [] {
        published.store(1, kRelease);
        fence<kFenced>();
        woken = asleep.load(kAcquire) == 1;
      },
      [] {
        asleep.store(1, kRelease);
        fence<kFenced>();
        sleeps = published.load(kAcquire) < 1;
      });
  assert(woken || !sleeps);
}

struct Client {
  const char* name;
  void (*run)();
};
constexpr Client kClients[] = {
    {"store_buffering", store_buffering<false>},
    {"store_buffering_fenced", store_buffering<true>},
    {"task_pool", task_pool<false>},
    {"task_pool_fenced", task_pool<true>},
    {"hazard_pointer", hazard_pointer<false>},
    {"hazard_pointer_fenced", hazard_pointer<true>},
    {"event_count", event_count<false>},
    {"event_count_fenced", event_count<true>},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Client& client : kClients) {
    if (argc == 2 && std::strcmp(argv[1], client.name) == 0) {
      client.run();
      return 0;
    }
  }
  return 2;
}
