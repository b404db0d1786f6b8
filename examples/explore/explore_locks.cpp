// Two threads and a critical section, by locks of several kinds.
//
//   explore_locks peterson | peterson_fenced | dekker | dekker_fenced | test_and_set | ticket |
//                 compare_exchange | mcs | mutex | spin | none |
//                 mutex_three | test_and_set_three
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <cstring>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <tsomon.h>

namespace {

bool fenced = false;
bool three = false;  // threads
std::atomic<int> flag[2];
std::atomic<int> turn{0};
std::atomic<int> next_ticket{0};
std::atomic<int> now_served{0};
std::mutex mutex;
pthread_spinlock_t spin_lock;
int inside = 0;  // plain: the lock protects it
int count = 0;

void fence() {
  if (fenced) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

struct Peterson {
  static void lock(int me) {
    flag[me].store(1, std::memory_order_release);
    turn.store(1 - me, std::memory_order_release);
    fence();
    while (flag[1 - me].load(std::memory_order_acquire) == 1 &&
           turn.load(std::memory_order_acquire) == 1 - me) {
    }
  }
  static void unlock(int me) { flag[me].store(0, std::memory_order_release); }
};

struct Dekker {
  static void lock(int me) {
    flag[me].store(1, std::memory_order_release);
    fence();
    while (flag[1 - me].load(std::memory_order_acquire) == 1) {
      if (turn.load(std::memory_order_acquire) != me) {
        flag[me].store(0, std::memory_order_release);
        while (turn.load(std::memory_order_acquire) != me) {
        }
        flag[me].store(1, std::memory_order_release);
        fence();
      }
    }
  }
  static void unlock(int me) {
    turn.store(1 - me, std::memory_order_release);
    flag[me].store(0, std::memory_order_release);
  }
};

struct TestAndSet {
  static void lock(int) {
    while (turn.exchange(1, std::memory_order_acquire) != 0) {
    }
  }
  static void unlock(int) { turn.store(0, std::memory_order_release); }
};

struct CompareExchange {
  static void lock(int me) {
    int expected = 0;
    while (!turn.compare_exchange_weak(expected, me + 1, std::memory_order_acquire)) {
      expected = 0;
    }
  }
  static void unlock(int) { turn.store(0, std::memory_order_release); }
};

struct Ticket {
  static void lock(int) {
    const int mine = next_ticket.fetch_add(1, std::memory_order_relaxed);
    while (now_served.load(std::memory_order_acquire) != mine) {
    }
  }
  static void unlock(int) {
    now_served.store(now_served.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
};

struct Node {
  std::atomic<Node*> next{nullptr};
  std::atomic<int> wait{0};
};
std::atomic<Node*> tail{nullptr};
Node nodes[2];

struct Mcs {
  static void lock(int me) {
    Node* const mine = &nodes[me];
    mine->next.store(nullptr, std::memory_order_relaxed);
    mine->wait.store(1, std::memory_order_relaxed);
    if (Node* const before = tail.exchange(mine, std::memory_order_acq_rel); before != nullptr) {
      before->next.store(mine, std::memory_order_release);
      while (mine->wait.load(std::memory_order_acquire) != 0) {
      }
    }
  }
  static void unlock(int me) {
    Node* const mine = &nodes[me];
    Node* expected = mine;
    if (mine->next.load(std::memory_order_acquire) == nullptr &&
        tail.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel)) {
      return;
    }
    Node* after = nullptr;
    while ((after = mine->next.load(std::memory_order_acquire)) == nullptr) {
    }
    after->wait.store(0, std::memory_order_release);
  }
};

struct Mutex {
  static void lock(int) { mutex.lock(); }
  static void unlock(int) { mutex.unlock(); }
};

struct Spin {
  static void lock(int) { pthread_spin_lock(&spin_lock); }
  static void unlock(int) { pthread_spin_unlock(&spin_lock); }
};

struct None {
  static void lock(int) {}
  static void unlock(int) {}
};

template <typename Lock>
void work(int me) {
  Lock::lock(me);
  ++inside;
  assert(inside == 1);
  ++count;
  --inside;
  Lock::unlock(me);
}

template <typename Lock>
int run() {
  std::thread other([] { work<Lock>(1); });
  std::thread third;
  if (three) {
    third = std::thread([] { work<Lock>(2); });
  }
  work<Lock>(0);
  other.join();
  if (three) {
    third.join();
  }
  tsomon_outcome("count=%d", count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  fenced = std::strstr(what, "_fenced") != nullptr;
  three = std::strstr(what, "_three") != nullptr;
  pthread_spin_init(&spin_lock, 0);
  const auto is = [what](const char* name) {
    return std::strncmp(what, name, std::strlen(name)) == 0;
  };
  return is("peterson")           ? run<Peterson>()
         : is("dekker")           ? run<Dekker>()
         : is("test_and_set")     ? run<TestAndSet>()
         : is("compare_exchange") ? run<CompareExchange>()
         : is("ticket")           ? run<Ticket>()
         : is("mcs")              ? run<Mcs>()
         : is("mutex")            ? run<Mutex>()
         : is("spin")             ? run<Spin>()
         : is("none")             ? run<None>()
                                  : 2;
}
