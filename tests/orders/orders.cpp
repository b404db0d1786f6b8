// Correct programs, one for each way in which the C, the C++ library or the kernel order threads:
//   orders [WAY...]    those ways, or all
//
// In each a thread uses a place of its own (plain memory) before it gives, another one after it has
// taken, and nothing but the way orders the two: no race can be, whatever the schedule. `race` and
// its relatives are counterparts in which nothing does.
#include "orders.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

namespace orders {

void must(bool worked) {
  if (!worked) {
    std::perror("orders");
    std::_Exit(1);
  }
}

// Runs what it is given to its end. It takes no memory of its own.
class Thread {
 public:
  explicit Thread(const std::function<void()>& work) {
    must(pthread_create(&thread_, nullptr, run, const_cast<std::function<void()>*>(&work)) == 0);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { must(pthread_join(thread_, nullptr) == 0); }

 private:
  static void* run(void* work) {
    (*static_cast<const std::function<void()>*>(work))();
    return nullptr;
  }

  pthread_t thread_{};
};

// The taker begins first.
void hand_over(const std::function<void()>& give, const std::function<void()>& take) {
  Place place;
  const std::function<void()> takes = [&] {
    take();
    place.use();
  };
  const std::function<void()> gives = [&] {
    place.use();
    give();
  };
  const Thread taker(takes);
  const Thread giver(gives);
}

// Two threads that do the same.
void both(const std::function<void(int)>& work) {
  const std::function<void()> one = [&] { work(0); };
  const std::function<void()> other = [&] { work(1); };
  const Thread first(one);
  const Thread second(other);
}

namespace {

// One-time initialisation. What is initialised is plain memory.

long made;

void posix_once() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  both([](int) {
    must(pthread_once(&once, [] { use(&made); }) == 0);
    must(look(&made) != 0);
  });
}
void c_once() {
  static once_flag flag = ONCE_FLAG_INIT;
  static long mine;
  both([](int) {
    call_once(&flag, [] { use(&mine); });
    must(look(&mine) != 0);
  });
}
void library_once() {
  static std::once_flag flag;
  static long mine;
  both([](int) {
    std::call_once(flag, [] { use(&mine); });
    must(look(&mine) != 0);
  });
}
void once_that_throws() {
  static std::once_flag flag;
  static long mine;
  static int calls;  // by whoever initialises
  both([](int) {
    for (int i = 0; i < 2; ++i) {
      try {
        std::call_once(flag, [] {
          use(&mine);
          if (++calls == 1) {
            throw std::runtime_error("not yet");
          }
        });
        must(look(&mine) != 0);
      } catch (const std::runtime_error&) {
      }
    }
  });
}
struct Made {
  explicit Made(int* calls) {
    use(&value);
    if (++*calls == 1) {
      throw std::runtime_error("not yet");
    }
  }
  long value = 0;
};
void local_static() {
  both([](int) {
    static const long mine = [] {
      long* const place = &made;
      use(place);
      return *place;
    }();
    must(look(&mine) != 0);
  });
}
void local_static_that_throws() {
  static int calls;
  both([](int) {
    for (int i = 0; i < 2; ++i) {
      try {
        static const Made mine(&calls);
        must(look(&mine.value) != 0);
      } catch (const std::runtime_error&) {
      }
    }
  });
}

// Barriers. In each round every thread looks at what the others have done before it.

template <typename Wait>
void rounds(const Wait& wait) {
  static constexpr int kRounds = 3;
  long mine[2][kRounds] = {};
  both([&](int number) {
    for (int round = 0; round < kRounds; ++round) {
      use(&mine[number][round]);
      wait();
      must(look(&mine[1 - number][round]) != 0);
    }
  });
}
void posix_barrier() {
  pthread_barrier_t barrier;
  must(pthread_barrier_init(&barrier, nullptr, 2) == 0);
  rounds([&] { pthread_barrier_wait(&barrier); });
  pthread_barrier_destroy(&barrier);
}
// Four threads at a barrier for two: which of them meet is not known beforehand.
void crowded_barrier() {
  pthread_barrier_t barrier;
  must(pthread_barrier_init(&barrier, nullptr, 2) == 0);
  std::atomic<int> arrivals{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (arrivals.fetch_add(1) < 16) {
        pthread_barrier_wait(&barrier);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  pthread_barrier_destroy(&barrier);
}
void library_barrier() {
  std::barrier all(2);
  rounds([&] { all.arrive_and_wait(); });
}
void latch() {
  std::latch all(2);
  long mine[2] = {};
  both([&](int number) {
    use(&mine[number]);
    all.arrive_and_wait();
    must(look(&mine[1 - number]) != 0);
  });
}

// Semaphores.

void semaphore() {
  sem_t semaphore;
  must(sem_init(&semaphore, 0, 0) == 0);
  hand_over([&] { sem_post(&semaphore); }, [&] { sem_wait(&semaphore); });
  hand_over([&] { sem_post(&semaphore); },
            [&] {
              while (sem_trywait(&semaphore) != 0) {
                usleep(100);
              }
            });
  const timespec time = later(60);
  hand_over([&] { sem_post(&semaphore); }, [&] { must(sem_timedwait(&semaphore, &time) == 0); });
  sem_destroy(&semaphore);
}
void named_semaphore() {
  const std::string name = "/tsomon.orders." + std::to_string(getpid());
  sem_t* const semaphore = sem_open(name.c_str(), O_CREAT | O_EXCL, 0600, 0);
  must(semaphore != SEM_FAILED);
  sem_t* const again = sem_open(name.c_str(), 0);
  sem_unlink(name.c_str());
  hand_over([&] { sem_post(semaphore); }, [&] { sem_wait(again); });
  sem_close(again);
  sem_close(semaphore);
}
void semaphore_as_lock() {
  sem_t semaphore;
  must(sem_init(&semaphore, 0, 1) == 0);
  Place place;
  both([&](int) {
    for (int i = 0; i < 5; ++i) {
      sem_wait(&semaphore);
      place.use();
      sem_post(&semaphore);
    }
  });
}
void two_posts() {
  sem_t done;
  must(sem_init(&done, 0, 0) == 0);
  long mine[2] = {};
  std::thread one([&] {
    use(&mine[0]);
    sem_post(&done);
  });
  std::thread other([&] {
    use(&mine[1]);
    sem_post(&done);
  });
  sem_wait(&done);
  sem_wait(&done);
  must(look(&mine[0]) + look(&mine[1]) == 2);
  one.join();
  other.join();
}
// A ring that is never fuller than it is long.
void ring() {
  constexpr int kPlaces = 2;
  sem_t free;
  sem_t full;
  must(sem_init(&free, 0, kPlaces) == 0 && sem_init(&full, 0, 0) == 0);
  long places[kPlaces] = {};
  both([&](int number) {
    for (int i = 0; i < 10; ++i) {
      sem_wait(number == 0 ? &free : &full);
      use(&places[i % kPlaces]);
      sem_post(number == 0 ? &full : &free);
    }
  });
}
void library_semaphore() {
  std::counting_semaphore<4> semaphore(0);
  hand_over([&] { semaphore.release(); }, [&] { semaphore.acquire(); });
}

// Conditions, tries, times.

template <typename Mutex, typename Condition, typename Wait>
void notified(Mutex& mutex, Condition& condition, const Wait& wait) {
  bool ready = false;
  hand_over(
      [&] {
        const std::lock_guard<Mutex> held(mutex);
        ready = true;
        condition.notify_one();
      },
      [&] {
        std::unique_lock<Mutex> held(mutex);
        wait(held, [&] { return ready; });
      });
}
void condition() {
  std::mutex mutex;
  std::condition_variable condition;
  notified(mutex, condition, [&](auto& held, const auto& ready) { condition.wait(held, ready); });
  notified(mutex, condition, [&](auto& held, const auto& ready) {
    while (!condition.wait_for(held, std::chrono::milliseconds(1), ready)) {
    }
  });
}
void condition_of_any_lock() {
  std::shared_mutex mutex;
  std::condition_variable_any condition;
  notified(mutex, condition, [&](auto& held, const auto& ready) { condition.wait(held, ready); });
}
void tries() {
  std::timed_mutex mutex;
  Place place;
  both([&](int number) {
    for (int i = 0; i < 5; ++i) {
      while (number == 0 ? !mutex.try_lock() : !mutex.try_lock_for(std::chrono::seconds(60))) {
        std::this_thread::yield();
      }
      place.use();
      mutex.unlock();
    }
  });
}
void spin_lock() {
  pthread_spinlock_t lock;
  must(pthread_spin_init(&lock, 0) == 0);
  Place place;
  both([&](int number) {
    for (int i = 0; i < 5; ++i) {
      if (number == 0) {
        pthread_spin_lock(&lock);
      } else {
        while (pthread_spin_trylock(&lock) != 0) {
        }
      }
      place.use();
      pthread_spin_unlock(&lock);
    }
  });
}
void readers() {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  long place = 0;
  both([&](int number) {
    for (int i = 0; i < 5; ++i) {
      if (number == 0) {
        pthread_rwlock_wrlock(&lock);
        use(&place);
      } else {
        pthread_rwlock_rdlock(&lock);
        look(&place);
      }
      pthread_rwlock_unlock(&lock);
    }
  });
}
// A lock that is destroyed by whoever leaves it last, and made anew by who comes next.
void remade_lock() {
  pthread_rwlock_t lock;
  std::atomic<int> users{-1};  // -1: there is none; -2: somebody makes it, or destroys it
  Place place;
  both([&](int) {
    for (int i = 0; i < 30; ++i) {
      int now = users.load();
      while (now == -2 || !users.compare_exchange_weak(now, now == -1 ? -2 : now + 1)) {
        std::this_thread::yield();
        now = users.load();
      }
      if (now == -1) {
        must(pthread_rwlock_init(&lock, nullptr) == 0);
        users.store(1);
      }
      must(pthread_rwlock_wrlock(&lock) == 0);
      place.use();
      must(pthread_rwlock_unlock(&lock) == 0);
      int last = 1;
      if (i % 4 == 0 && users.compare_exchange_strong(last, -2)) {
        must(pthread_rwlock_destroy(&lock) == 0);
        users.store(-1);
      } else {
        users.fetch_sub(1);
      }
    }
  });
}
void recursive_mutex() {
  std::recursive_mutex mutex;
  Place place;
  both([&](int) {
    const std::lock_guard outer(mutex);
    { const std::lock_guard inner(mutex); }
    place.use();
  });
}
void robust_mutex() {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t mutex;
  must(pthread_mutex_init(&mutex, &robust) == 0);
  Place place;
  std::atomic<bool> held{false};
  std::thread heir([&] {
    while (!held.load()) {
      usleep(100);
    }
    must(pthread_mutex_lock(&mutex) == EOWNERDEAD);
    place.use();
    pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  std::thread([&] {
    pthread_mutex_lock(&mutex);
    place.use();
    held.store(true);
  }).join();
  heir.join();
}

// Threads and what they leave.

pthread_key_t key;
void thread_data() {
  static long mine;
  must(pthread_key_create(&key, [](void* data) { use(static_cast<long*>(data)); }) == 0);
  std::thread([] { pthread_setspecific(key, &mine); }).join();
  must(look(&mine) == 1);
  pthread_key_delete(key);
}
void* exits(void* place) {
  static_cast<Place*>(place)->use();
  pthread_exit(place);
}
void exit_of_threads() {
  Place place[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    must(pthread_create(&threads[i], nullptr, exits, &place[i]) == 0);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], nullptr);
    place[i].use();
  }
}
void* is_cancelled(void* place) {
  static_cast<Place*>(place)->use();
  for (;;) {
    pause();
  }
}
void cancelled() {
  Place place;
  pthread_t thread;
  must(pthread_create(&thread, nullptr, is_cancelled, &place) == 0);
  pthread_cancel(thread);
  pthread_join(thread, nullptr);
  place.use();
}
// Cleanup handlers run behind the cancellation; those of a wait on a condition with the mutex.
struct Waiters {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  int count = 0;
  Place place[2];
};
void leaves_wait(void* data) {
  auto* const waiters = static_cast<Waiters*>(data);
  --waiters->count;
  pthread_mutex_unlock(&waiters->mutex);
}
void* waits_for_ever(void* data) {
  auto* const waiters = static_cast<Waiters*>(data);
  pthread_mutex_lock(&waiters->mutex);
  ++waiters->count;
  pthread_cleanup_push(leaves_wait, data);
  for (;;) {
    pthread_cond_wait(&waiters->condition, &waiters->mutex);
  }
  pthread_cleanup_pop(1);
  return nullptr;
}
void leaves_sleep(void* place) { static_cast<Place*>(place)->use(); }
void* sleeps_for_ever(void* place) {
  pthread_cleanup_push(leaves_sleep, place);
  for (;;) {
    pause();
  }
  pthread_cleanup_pop(1);
  return nullptr;
}
void cancelled_in_wait() {
  Waiters waiters;
  pthread_t threads[4];
  for (int i = 0; i < 2; ++i) {
    must(pthread_create(&threads[i], nullptr, waits_for_ever, &waiters) == 0);
    must(pthread_create(&threads[2 + i], nullptr, sleeps_for_ever, &waiters.place[i]) == 0);
  }
  const auto wait_until = [&](int count) {
    for (bool all = false; !all; usleep(1000)) {
      pthread_mutex_lock(&waiters.mutex);
      all = waiters.count == count;
      pthread_mutex_unlock(&waiters.mutex);
    }
  };
  wait_until(2);
  for (int i = 0; i < 2; ++i) {
    waiters.place[i].use();
    pthread_cancel(threads[i]);
    pthread_cancel(threads[2 + i]);
  }
  wait_until(0);
  for (pthread_t thread : threads) {
    pthread_join(thread, nullptr);
  }
}
void detached() {
  Place place;
  sem_t done;
  must(sem_init(&done, 0, 0) == 0);
  std::thread([&] {
    place.use();
    sem_post(&done);
  }).detach();
  sem_wait(&done);
  place.use();
}
void exceptions() {
  both([](int number) {
    for (int i = 0; i < 3; ++i) {
      try {
        throw std::runtime_error(std::to_string(number));
      } catch (const std::exception& error) {
        must(error.what()[0] == static_cast<char>('0' + number));
      }
    }
  });
}
void futures() {
  Place place;
  std::promise<void> promise;
  std::shared_future<void> shared = promise.get_future().share();
  std::thread waits([&, mine = shared] {
    mine.wait();
    place.use();
  });
  place.use();
  promise.set_value();
  waits.join();
  auto result = std::async(std::launch::async, [&] { place.use(); });
  result.get();
  place.use();
  std::packaged_task<void()> task([&] { place.use(); });
  auto done = task.get_future();
  std::thread runs(std::move(task));
  done.get();
  place.use();
  runs.join();
}
void stops() {
  long place = 0;
  std::jthread thread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      usleep(100);
    }
    use(&place);
  });
  use(&place);
  thread.request_stop();
  thread.join();
  must(look(&place) == 2);
}
void shared_pointers() {
  auto shared = std::make_shared<long>(0);
  both([mine = shared](int number) {
    auto copy = mine;
    if (number == 0) {
      copy.reset();
    }
  });
  use(shared.get());
}
int c_thread(void* place) {
  static_cast<Place*>(place)->use();
  return 7;
}
void c_threads() {
  Place place;
  thrd_t thread;
  must(thrd_create(&thread, c_thread, &place) == thrd_success);
  int result = 0;
  must(thrd_join(thread, &result) == thrd_success && result == 7);
  place.use();
  mtx_t mutex;
  cnd_t condition;
  must(mtx_init(&mutex, mtx_plain) == thrd_success && cnd_init(&condition) == thrd_success);
  bool ready = false;
  hand_over(
      [&] {
        mtx_lock(&mutex);
        ready = true;
        cnd_broadcast(&condition);
        mtx_unlock(&mutex);
      },
      [&] {
        mtx_lock(&mutex);
        while (!ready) {
          cnd_wait(&condition, &mutex);
        }
        mtx_unlock(&mutex);
      });
  both([&](int) {
    while (mtx_trylock(&mutex) != thrd_success) {
      thrd_yield();
    }
    place.use();
    mtx_unlock(&mutex);
  });
  mtx_destroy(&mutex);
  cnd_destroy(&condition);
}

// The counterpart: a race.
void race() {
  long place = 0;
  both([&](int) { use(&place); });
}

}  // namespace

const std::vector<Way>& library_ways() {
  static const std::vector<Way> ways = {
      {"posix_once", posix_once},
      {"c_once", c_once},
      {"library_once", library_once},
      {"once_that_throws", once_that_throws},
      {"local_static", local_static},
      {"local_static_that_throws", local_static_that_throws},
      {"posix_barrier", posix_barrier},
      {"crowded_barrier", crowded_barrier},
      {"library_barrier", library_barrier},
      {"latch", latch},
      {"semaphore", semaphore},
      {"named_semaphore", named_semaphore},
      {"semaphore_as_lock", semaphore_as_lock},
      {"two_posts", two_posts},
      {"ring", ring},
      {"library_semaphore", library_semaphore},
      {"condition", condition},
      {"condition_of_any_lock", condition_of_any_lock},
      {"tries", tries},
      {"spin_lock", spin_lock},
      {"readers", readers},
      {"recursive_mutex", recursive_mutex},
      {"robust_mutex", robust_mutex},
      {"remade_lock", remade_lock},
      {"thread_data", thread_data},
      {"exit_of_threads", exit_of_threads},
      {"cancelled", cancelled},
      {"cancelled_in_wait", cancelled_in_wait},
      {"detached", detached},
      {"exceptions", exceptions},
      {"futures", futures},
      {"stops", stops},
      {"shared_pointers", shared_pointers},
      {"c_threads", c_threads},
  };
  return ways;
}

}  // namespace orders

int main(int count, char** names) {
  using namespace orders;
  std::vector<Way> ways = library_ways();
  ways.insert(ways.end(), kernel_ways().begin(), kernel_ways().end());
  if (count > 1) {
    ways.push_back({"race", race});
    ways.insert(ways.end(), kernel_races().begin(), kernel_races().end());
  }
  for (const Way& way : ways) {
    const bool asked = std::any_of(names + 1, names + count, [&](const char* name) {
      return std::strcmp(name, way.name) == 0;
    });
    if (count > 1 && std::strcmp(names[1], "--list") == 0) {
      std::puts(way.name);
    } else if (count == 1 || asked) {
      way.run();
    }
  }
}
