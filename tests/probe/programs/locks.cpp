// Every way to take a lock, each tried where it fails and where it succeeds: locks KIND
// Prints the objects' addresses; the test looks for what was done to them, and for nothing else.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "tsomon.h"

namespace {

int failures = 0;
void expect(const char* what, int result, int expected) {
  if (result != expected) {
    std::fprintf(stderr, "%s: %d, expected %d\n", what, result, expected);
    ++failures;
  }
}
#define EXPECT(CALL, RESULT) expect(#CALL, CALL, RESULT)

void name(const char* text, const volatile void* object) {
  dprintf(STDOUT_FILENO, "%s %p\n", text, const_cast<void*>(object));  // is not recorded
}

const timespec past{1, 0};
const timespec wrong{1, 2000000000};
timespec later(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  now.tv_sec += 1000;
  return now;
}

template <typename Function>
void in_thread(Function function) {
  std::thread(function).join();
}

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
pthread_cond_t never = PTHREAD_COND_INITIALIZER;
pthread_spinlock_t spin;
pthread_barrier_t barrier;
sem_t semaphore;
int ready;
int shared_data[2];

void mutexes() {
  name("mutex", &mutex);
  const timespec real = later(CLOCK_REALTIME);
  const timespec monotonic = later(CLOCK_MONOTONIC);
  EXPECT(pthread_mutex_trylock(&mutex), 0);
  in_thread([] {  // none of these takes it
    EXPECT(pthread_mutex_trylock(&mutex), EBUSY);
    EXPECT(pthread_mutex_timedlock(&mutex, &past), ETIMEDOUT);
    EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
    EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &past), ETIMEDOUT);
  });
  EXPECT(pthread_mutex_unlock(&mutex), 0);
  EXPECT(pthread_mutex_timedlock(&mutex, &real), 0);
  EXPECT(pthread_mutex_unlock(&mutex), 0);
  EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &monotonic), 0);
  EXPECT(pthread_mutex_unlock(&mutex), 0);
  EXPECT(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &real), 0);
  EXPECT(pthread_mutex_unlock(&mutex), 0);
}

// Locks that are taken again by their owner: only the outermost pair acts on memory.
void owned() {
  static std::recursive_mutex recursive;
  static pthread_mutex_t checking;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&checking, &attributes);
  name("recursive", &recursive);
  name("checking", &checking);
  recursive.lock();
  recursive.lock();
  EXPECT(recursive.try_lock(), true);
  recursive.unlock();
  recursive.unlock();
  recursive.unlock();
  EXPECT(pthread_mutex_unlock(&checking), EPERM);
  EXPECT(pthread_mutex_lock(&checking), 0);
  EXPECT(pthread_mutex_lock(&checking), EDEADLK);
  in_thread([] { EXPECT(pthread_mutex_unlock(&checking), EPERM); });
  EXPECT(pthread_mutex_unlock(&checking), 0);
}

// A robust mutex whose owner ended is held by who finds that out.
void robust() {
  static pthread_mutex_t left;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&left, &attributes);
  name("left", &left);
  in_thread([] { EXPECT(pthread_mutex_lock(&left), 0); });
  EXPECT(pthread_mutex_lock(&left), EOWNERDEAD);
  EXPECT(pthread_mutex_consistent(&left), 0);
  EXPECT(pthread_mutex_unlock(&left), 0);
  in_thread([] { EXPECT(pthread_mutex_lock(&left), 0); });
  EXPECT(pthread_mutex_lock(&left), EOWNERDEAD);
  EXPECT(pthread_mutex_unlock(&left), 0);  // as it is: nobody can take it any more
  EXPECT(pthread_mutex_lock(&left), ENOTRECOVERABLE);
}

void rwlocks() {
  name("rwlock", &rwlock);
  const timespec real = later(CLOCK_REALTIME);
  const timespec monotonic = later(CLOCK_MONOTONIC);
  EXPECT(pthread_rwlock_trywrlock(&rwlock), 0);
  in_thread([] {
    EXPECT(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
    EXPECT(pthread_rwlock_timedrdlock(&rwlock, &past), ETIMEDOUT);
    EXPECT(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past), ETIMEDOUT);
    EXPECT(pthread_rwlock_trywrlock(&rwlock), EBUSY);
    EXPECT(pthread_rwlock_timedwrlock(&rwlock, &past), ETIMEDOUT);
    EXPECT(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  });
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
  EXPECT(pthread_rwlock_timedwrlock(&rwlock, &real), 0);
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
  EXPECT(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &monotonic), 0);
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
  EXPECT(pthread_rwlock_tryrdlock(&rwlock), 0);
  EXPECT(pthread_rwlock_timedrdlock(&rwlock, &real), 0);  // two readers
  in_thread([] { EXPECT(pthread_rwlock_trywrlock(&rwlock), EBUSY); });
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
  EXPECT(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &monotonic), 0);
  EXPECT(pthread_rwlock_unlock(&rwlock), 0);
}

void spins() {
  name("spin", &spin);
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  EXPECT(pthread_spin_lock(&spin), 0);
  in_thread([] { EXPECT(pthread_spin_trylock(&spin), EBUSY); });
  EXPECT(pthread_spin_unlock(&spin), 0);
  EXPECT(pthread_spin_trylock(&spin), 0);
  EXPECT(pthread_spin_unlock(&spin), 0);
}

void semaphores() {
  name("semaphore", &semaphore);
  sem_init(&semaphore, 0, 0);
  const timespec real = later(CLOCK_REALTIME);
  const timespec monotonic = later(CLOCK_MONOTONIC);
  EXPECT(sem_trywait(&semaphore), -1);
  EXPECT(errno, EAGAIN);
  EXPECT(sem_timedwait(&semaphore, &past), -1);
  EXPECT(errno, ETIMEDOUT);
  EXPECT(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past), -1);
  EXPECT(errno, ETIMEDOUT);
  in_thread([] {
    for (int i = 0; i < 4; ++i) {
      EXPECT(sem_post(&semaphore), 0);
    }
  });
  EXPECT(sem_wait(&semaphore), 0);
  EXPECT(sem_trywait(&semaphore), 0);
  EXPECT(sem_timedwait(&semaphore, &real), 0);
  EXPECT(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &monotonic), 0);
}

void barriers() {
  name("barrier", &barrier);
  name("data0", &shared_data[0]);
  name("data1", &shared_data[1]);
  pthread_barrier_init(&barrier, nullptr, 2);
  const auto rounds = [](int me) {
    int last = 0;
    for (int round = 0; round < 3; ++round) {
      shared_data[me] = round + 1;
      last += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD ? 1 : 0;
      expect("data", shared_data[1 - me], round + 1);
      last += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD ? 1 : 0;
    }
    return last;
  };
  int other_last = 0;
  std::thread other([&] { other_last = rounds(1); });
  const int last = rounds(0);
  other.join();
  expect("serial threads", last + other_last, 6);
}

// Waits that time out come back once, with the mutex.
void timed_waits() {
  name("mutex", &mutex);
  name("never", &never);
  TSOMON_UNIT("waits");
  EXPECT(pthread_mutex_lock(&mutex), 0);
  EXPECT(pthread_cond_timedwait(&never, &mutex, &past), ETIMEDOUT);
  EXPECT(pthread_cond_clockwait(&never, &mutex, CLOCK_MONOTONIC, &past), ETIMEDOUT);
  EXPECT(pthread_cond_clockwait(&never, &mutex, CLOCK_REALTIME, &past), ETIMEDOUT);
  EXPECT(pthread_mutex_unlock(&mutex), 0);
}

// A wait that fails never gave the mutex back.
void wrong_wait() {
  name("mutex", &mutex);
  name("never", &never);
  TSOMON_UNIT("waits");
  EXPECT(pthread_mutex_lock(&mutex), 0);
  EXPECT(pthread_cond_timedwait(&never, &mutex, &wrong), EINVAL);
  EXPECT(pthread_mutex_unlock(&mutex), 0);
}

void waits() {
  name("mutex", &mutex);
  name("condition", &condition);
  name("ready", &ready);
  EXPECT(pthread_mutex_lock(&mutex), 0);
  std::thread other([] {  // cannot have the mutex before the wait below gives it back
    TSOMON_UNIT("set");
    EXPECT(pthread_mutex_lock(&mutex), 0);
    ready = 1;
    EXPECT(pthread_cond_signal(&condition), 0);
    EXPECT(pthread_mutex_unlock(&mutex), 0);
  });
  {
    TSOMON_UNIT("wait");
    while (ready == 0) {
      EXPECT(pthread_cond_wait(&condition, &mutex), 0);
    }
    ready = 2;
  }
  EXPECT(pthread_mutex_unlock(&mutex), 0);
  other.join();
}

// The same by the classes of the C++ library, some of whose calls are made in libstdc++.so.
void library_waits() {
  static std::mutex mutex;
  static std::condition_variable condition;
  name("mutex", &mutex);
  name("condition", &condition);
  name("ready", &ready);
  std::unique_lock<std::mutex> lock(mutex);
  std::thread other([] {
    TSOMON_UNIT("set");
    const std::lock_guard<std::mutex> lock(mutex);
    ready = 1;
    condition.notify_one();
  });
  {
    TSOMON_UNIT("wait");
    condition.wait(lock, [] { return ready != 0; });
    ready = 2;
  }
  EXPECT(condition.wait_until(lock, std::chrono::steady_clock::time_point()) ==
             std::cv_status::timeout,
         true);
  EXPECT(condition.wait_until(lock, std::chrono::system_clock::time_point()) ==
             std::cv_status::timeout,
         true);
  lock.unlock();
  other.join();
}

}  // namespace

int main(int argc, char** argv) {
  struct Kind {
    const char* name;
    void (*run)();
  };
  const Kind kinds[] = {{"mutexes", mutexes},
                        {"owned", owned},
                        {"robust", robust},
                        {"rwlocks", rwlocks},
                        {"spins", spins},
                        {"semaphores", semaphores},
                        {"barriers", barriers},
                        {"timed_waits", timed_waits},
                        {"wrong_wait", wrong_wait},
                        {"waits", waits},
                        {"library_waits", library_waits}};
  in_thread([] {});  // the first thread: recording begins
  for (const Kind& kind : kinds) {
    if (argc > 1 && std::strcmp(argv[1], kind.name) == 0) {
      kind.run();
      return failures == 0 ? 0 : 1;
    }
  }
  return 2;
}
