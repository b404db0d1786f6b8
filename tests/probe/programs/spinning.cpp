// Threads that find a lock taken for 20 ms: how often each was put to sleep meanwhile.
#include <atomic>
#include <cstdio>
#include <thread>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
std::atomic<bool> about_to_take{false};

long times_asleep() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// `hold` and `give_back` by this thread, `take` by another one.
template <typename Lock>
void meet(const char* name, Lock* lock, int (*hold)(Lock*), int (*take)(Lock*),
          int (*give_back)(Lock*)) {
  hold(lock);
  about_to_take = false;
  long asleep = 0;
  std::thread other([&] {
    const long before = times_asleep();
    about_to_take = true;
    take(lock);
    asleep = times_asleep() - before;
    give_back(lock);
  });
  while (!about_to_take) {
    usleep(1000);
  }
  usleep(20000);
  give_back(lock);
  other.join();
  std::printf("%s %ld\n", name, asleep);
}

}  // namespace

int main() {
  std::thread([] {}).join();  // recording begins
  meet("mutex", &mutex, pthread_mutex_lock, pthread_mutex_lock, pthread_mutex_unlock);
  meet("writer", &rwlock, pthread_rwlock_rdlock, pthread_rwlock_wrlock, pthread_rwlock_unlock);
  meet("reader", &rwlock, pthread_rwlock_wrlock, pthread_rwlock_rdlock, pthread_rwlock_unlock);
}
