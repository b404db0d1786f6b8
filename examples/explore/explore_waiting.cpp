// Threads that wait for one another.
//
//   explore_waiting lock_order | lock_order_same | condition | condition_lost | semaphore | barrier
//   |
//                   once | static_local | read_write | flag | flag_never | atomic_wait | seqlock |
//                   seqlock_unchecked | double_checked | double_checked_early | crash | fork |
//                   spurious | any_waiter | any_waiter_all | timed_condition | timed_lock |
//                   timed_semaphore | timed_held | retry | retry_held | held
#include <atomic>
#undef NDEBUG  // the assertions are what is explored
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <pthread.h>
#include <semaphore.h>
#include <tsomon.h>
#include <unistd.h>

namespace {

std::mutex a;
std::mutex b;
std::condition_variable ready;
bool is_ready = false;
std::atomic<int> flag{0};
int data = 0;
int seen = 0;

int lock_order(bool same) {
  std::thread other([same] {
    const std::lock_guard first(same ? a : b);
    const std::lock_guard second(same ? b : a);
  });
  {
    const std::lock_guard first(a);
    const std::lock_guard second(b);
  }
  other.join();
  tsomon_outcome("done");
  return 0;
}

// The lost one tells without the lock, and without the other's looking again.
int condition(bool lost) {
  std::thread waiter([lost] {
    std::unique_lock lock(a);
    if (lost) {
      if (!is_ready) {
        ready.wait(lock);
      }
    } else {
      ready.wait(lock, [] { return is_ready; });
    }
    seen = data;
  });
  if (lost) {
    data = 7;
    ready.notify_one();
  } else {
    {
      const std::lock_guard lock(a);
      data = 7;
      is_ready = true;
    }
    ready.notify_one();
  }
  waiter.join();
  tsomon_outcome("seen=%d", seen);
  return 0;
}

int semaphore() {
  static sem_t items;
  sem_init(&items, 0, 0);
  std::thread producer([] {
    data = 7;
    sem_post(&items);
  });
  sem_wait(&items);
  assert(data == 7);
  producer.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

int barrier() {
  static pthread_barrier_t both;
  pthread_barrier_init(&both, nullptr, 2);
  std::thread other([] {
    data = 7;
    pthread_barrier_wait(&both);
  });
  pthread_barrier_wait(&both);
  assert(data == 7);
  other.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

int once() {
  static std::once_flag made;
  const auto make = [] { std::call_once(made, [] { ++data; }); };
  std::thread other(make);
  make();
  assert(data == 1);
  other.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

struct Counted {
  Counted() { ++data; }
  int value = 5;
};
int static_local() {
  const auto use = [] {
    static Counted made;
    return made.value;
  };
  std::thread other([use] { seen = use(); });
  assert(use() == 5);
  other.join();
  assert(data == 1 && seen == 5);
  tsomon_outcome("data=%d", data);
  return 0;
}

int read_write() {
  static std::shared_mutex lock;
  std::thread reader([] {
    const std::shared_lock shared(lock);
    seen = data;
    assert(seen == data);
  });
  {
    const std::unique_lock exclusive(lock);
    data = 1;
    data = 2;
  }
  reader.join();
  assert(seen == 0 || seen == 2);
  tsomon_outcome("seen=%d", seen);
  return 0;
}

int wait_for_flag(bool never) {
  std::thread other([never] {
    data = 7;
    flag.store(never ? 2 : 1, std::memory_order_release);
  });
  while (flag.load(std::memory_order_acquire) != 1) {
    std::this_thread::yield();
  }
  assert(data == 7);
  other.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

int atomic_wait() {
  std::thread other([] {
    data = 7;
    flag.store(1);
    flag.notify_one();
  });
  flag.wait(0);
  assert(data == 7);
  other.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

std::atomic<int> sequence{0};
std::atomic<int> left{0};
std::atomic<int> right{0};

int seqlock(bool checked) {
  std::thread writer([] {
    sequence.store(1, std::memory_order_relaxed);
    left.store(1, std::memory_order_release);
    right.store(1, std::memory_order_release);
    sequence.store(2, std::memory_order_release);
  });
  int l = 0;
  int r = 0;
  for (;;) {
    const int before = sequence.load(std::memory_order_acquire);
    if (checked && before % 2 != 0) {
      continue;
    }
    l = left.load(std::memory_order_acquire);
    r = right.load(std::memory_order_acquire);
    if (!checked || sequence.load(std::memory_order_relaxed) == before) {
      break;
    }
  }
  assert(l == r);
  writer.join();
  tsomon_outcome("%d %d", l, r);
  return 0;
}

struct Object {
  int value;
};
std::atomic<Object*> shared_object{nullptr};

// The broken one publishes the object before it is made.
int double_checked(bool broken) {
  const auto get = [broken] {
    Object* object = shared_object.load(std::memory_order_acquire);
    if (object == nullptr) {
      const std::lock_guard lock(a);
      object = shared_object.load(std::memory_order_relaxed);
      if (object == nullptr) {
        object = new Object;
        if (broken) {
          shared_object.store(object, std::memory_order_release);
        }
        object->value = 5;
        if (!broken) {
          shared_object.store(object, std::memory_order_release);
        }
      }
    }
    return object->value;
  };
  std::thread other([get] { seen = get(); });
  const int mine = get();
  other.join();
  assert(mine == 5 && seen == 5);
  tsomon_outcome("%d %d", mine, seen);
  return 0;
}

// Where the other has set the pointer back.
int crash() {
  static int target = 1;
  static std::atomic<int*> pointer{&target};
  std::thread other([] { pointer.store(nullptr, std::memory_order_release); });
  if (pointer.load(std::memory_order_acquire) != nullptr) {
    seen = *pointer.load(std::memory_order_acquire);
  }
  other.join();
  tsomon_outcome("seen=%d", seen);
  return 0;
}

// `if` where `while` belongs.
int spurious() {
  std::thread waiter([] {
    std::unique_lock lock(a);
    if (!is_ready) {
      ready.wait(lock);
    }
    assert(is_ready);
  });
  {
    const std::lock_guard lock(a);
    is_ready = true;
  }
  ready.notify_one();
  waiter.join();
  return 0;
}

// Two wait for different things, and one is told.
int any_waiter(bool all) {
  const auto wait_for = [](int what) {
    std::unique_lock lock(a);
    ready.wait(lock, [what] { return data == what; });
  };
  const auto tell = [all](int what) {
    {
      const std::lock_guard lock(a);
      data = what;
    }
    all ? ready.notify_all() : ready.notify_one();
  };
  std::thread one(wait_for, 1);
  std::thread two(wait_for, 2);
  tell(2);
  two.join();
  tell(1);
  one.join();
  tsomon_outcome("done");
  return 0;
}

constexpr std::chrono::milliseconds kLimit(10);

int timed_condition() {
  std::thread waiter([] {
    std::unique_lock lock(a);
    tsomon_outcome("told=%d", ready.wait_for(lock, kLimit, [] { return is_ready; }) ? 1 : 0);
  });
  {
    const std::lock_guard lock(a);
    is_ready = true;
  }
  ready.notify_one();
  waiter.join();
  return 0;
}

std::timed_mutex timed;

// It is taken in vain only while the other has it.
int timed_lock() {
  std::thread other([] {
    const std::lock_guard lock(timed);
    data = 1;
  });
  if (timed.try_lock_for(kLimit)) {
    seen = 1 + data;
    timed.unlock();
  }
  other.join();
  tsomon_outcome("seen=%d", seen);
  return 0;
}

int timed_semaphore() {
  static sem_t items;
  sem_init(&items, 0, 0);
  std::thread producer([] { sem_post(&items); });
  timespec limit{};
  clock_gettime(CLOCK_REALTIME, &limit);
  ++limit.tv_sec;
  const bool got = sem_timedwait(&items, &limit) == 0;
  producer.join();
  tsomon_outcome("got=%d", got ? 1 : 0);
  return 0;
}

// Nobody gives it back before.
int timed_held() {
  const std::lock_guard lock(timed);
  std::thread other([] { assert(!timed.try_lock_for(kLimit)); });
  other.join();
  tsomon_outcome("done");
  return 0;
}

// Since before there was another thread.
int held() {
  const std::lock_guard lock(a);
  std::thread other([] { assert(!a.try_lock()); });
  other.join();
  tsomon_outcome("done");
  return 0;
}

// Again and again until one deadline after the other; held: by one who waits for the thread.
int retry(bool held) {
  timespec past{1, 0};
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  std::thread other([past] {
    while (pthread_mutex_timedlock(&lock, &past) != 0) {
    }
    ++data;
    pthread_mutex_unlock(&lock);
  });
  if (held) {
    other.join();
    return 0;
  }
  pthread_mutex_unlock(&lock);
  other.join();
  tsomon_outcome("data=%d", data);
  return 0;
}

int make_process() {
  std::thread other([] { data = 1; });
  other.join();
  return fork() < 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  return is("lock_order")             ? lock_order(false)
         : is("lock_order_same")      ? lock_order(true)
         : is("condition")            ? condition(false)
         : is("condition_lost")       ? condition(true)
         : is("semaphore")            ? semaphore()
         : is("barrier")              ? barrier()
         : is("once")                 ? once()
         : is("static_local")         ? static_local()
         : is("read_write")           ? read_write()
         : is("flag")                 ? wait_for_flag(false)
         : is("flag_never")           ? wait_for_flag(true)
         : is("atomic_wait")          ? atomic_wait()
         : is("seqlock")              ? seqlock(true)
         : is("seqlock_unchecked")    ? seqlock(false)
         : is("double_checked")       ? double_checked(false)
         : is("double_checked_early") ? double_checked(true)
         : is("crash")                ? crash()
         : is("fork")                 ? make_process()
         : is("spurious")             ? spurious()
         : is("any_waiter")           ? any_waiter(false)
         : is("any_waiter_all")       ? any_waiter(true)
         : is("timed_condition")      ? timed_condition()
         : is("timed_lock")           ? timed_lock()
         : is("timed_semaphore")      ? timed_semaphore()
         : is("timed_held")           ? timed_held()
         : is("retry")                ? retry(false)
         : is("retry_held")           ? retry(true)
         : is("held")                 ? held()
                                      : 2;
}
