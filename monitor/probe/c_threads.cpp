// Threads, mutexes and condition variables of C11 (threads.h): those of POSIX under other names.
//
// In the C library each calls the other one without the dynamic linker, so that nothing of it would
// be seen; here it calls the hook. The objects are the same in glibc, and so are the values that
// threads return: an int in the place of a pointer.
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include <pthread.h>
#include <threads.h>

#include "monitor/probe/runtime.h"

namespace {

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

pthread_mutex_t* posix(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* posix(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }

int answer(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

void* as_pointer(int result) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(static_cast<unsigned>(result)));
}

struct Start {
  thrd_start_t routine;
  void* argument;
};

void* run(void* data) {
  const Start start = *static_cast<Start*>(data);
  std::free(data);
  return as_pointer(start.routine(start.argument));
}

}  // namespace

TSOMON_HOOK int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  auto* const start = static_cast<Start*>(std::malloc(sizeof(Start)));
  if (start == nullptr) {
    return thrd_nomem;
  }
  *start = {routine, argument};
  const int error = pthread_create(thread, nullptr, run, start);
  if (error != 0) {
    std::free(start);
  }
  // glibc: what a thread needs is not there.
  return error == EAGAIN ? thrd_nomem : answer(error);
}
TSOMON_HOOK int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (error == 0 && result != nullptr) {
    *result = static_cast<int>(reinterpret_cast<uintptr_t>(value));
  }
  return answer(error);
}
TSOMON_HOOK int thrd_detach(thrd_t thread) { return answer(pthread_detach(thread)); }
TSOMON_HOOK __attribute__((noreturn)) void thrd_exit(int result) {
  pthread_exit(as_pointer(result));
}

TSOMON_HOOK int mtx_lock(mtx_t* mutex) { return answer(pthread_mutex_lock(posix(mutex))); }
TSOMON_HOOK int mtx_trylock(mtx_t* mutex) { return answer(pthread_mutex_trylock(posix(mutex))); }
TSOMON_HOOK int mtx_timedlock(mtx_t* mutex, const timespec* time) {
  return answer(pthread_mutex_timedlock(posix(mutex), time));
}
TSOMON_HOOK int mtx_unlock(mtx_t* mutex) { return answer(pthread_mutex_unlock(posix(mutex))); }

TSOMON_HOOK int cnd_signal(cnd_t* condition) {
  return answer(pthread_cond_signal(posix(condition)));
}
TSOMON_HOOK int cnd_broadcast(cnd_t* condition) {
  return answer(pthread_cond_broadcast(posix(condition)));
}
TSOMON_HOOK int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return answer(pthread_cond_wait(posix(condition), posix(mutex)));
}
TSOMON_HOOK int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* time) {
  return answer(pthread_cond_timedwait(posix(condition), posix(mutex), time));
}
TSOMON_HOOK int thrd_sleep(const timespec* time, timespec* rest) {
  const int result = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
  return result == 0 ? 0 : result == EINTR ? -1 : -2;
}
TSOMON_HOOK void thrd_yield() { sched_yield(); }
