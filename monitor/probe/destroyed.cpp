// Ends of locks and condition variables (those of semaphores: synchronisation.cpp): recorded before
// the call, with a stamp. Reports of uses of what has been destroyed need them. A call that fails has
// ended nothing, but what it was about is in use then, which is what the record is for.
// Beginnings: recorded behind the call. What is made where another one was destroyed is another one.
// Missed: locks of the C++ library, whose destructors call nothing: they end with their memory.
#include <pthread.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"
#include "tso/model/channels.h"

TSOMON_REAL(pthread_mutex_init)
TSOMON_REAL(pthread_rwlock_init)
TSOMON_REAL(pthread_spin_init)
TSOMON_REAL_VERSION(pthread_cond_init, "GLIBC_2.3.2")
TSOMON_REAL(pthread_mutex_destroy)
TSOMON_REAL(pthread_rwlock_destroy)
TSOMON_REAL(pthread_spin_destroy)
TSOMON_REAL_VERSION(pthread_cond_destroy, "GLIBC_2.3.2")

using namespace tsomon::probe;

#define TSOMON_ENDS(NAME, TYPE)                                                             \
  TSOMON_HOOK int NAME(TYPE* object) noexcept {                                             \
    if (!tsomon::explore::active) {                                                         \
      put_point_now(RecordType::kDestroy, reinterpret_cast<uint64_t>(object), TSOMON_PC()); \
    }                                                                                       \
    return real_##NAME(object);                                                             \
  }

TSOMON_ENDS(pthread_mutex_destroy, pthread_mutex_t)
TSOMON_ENDS(pthread_rwlock_destroy, pthread_rwlock_t)
TSOMON_ENDS(pthread_spin_destroy, volatile pthread_spinlock_t)
TSOMON_ENDS(pthread_cond_destroy, pthread_cond_t)

#define TSOMON_BEGINS(NAME, TYPE, HOW)                                                       \
  TSOMON_HOOK int NAME(TYPE* object, HOW how) noexcept {                                     \
    const int result = real_##NAME(object, how);                                             \
    if (result == 0 && !tsomon::explore::active) {                                           \
      put_point_now(RecordType::kSend, tsomon::kBegins | reinterpret_cast<uint64_t>(object), \
                    TSOMON_PC());                                                            \
    }                                                                                        \
    return result;                                                                           \
  }

TSOMON_BEGINS(pthread_mutex_init, pthread_mutex_t, const pthread_mutexattr_t*)
TSOMON_BEGINS(pthread_rwlock_init, pthread_rwlock_t, const pthread_rwlockattr_t*)
TSOMON_BEGINS(pthread_spin_init, volatile pthread_spinlock_t, int)
TSOMON_BEGINS(pthread_cond_init, pthread_cond_t, const pthread_condattr_t*)
