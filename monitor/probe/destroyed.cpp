// Ends of locks and condition variables (those of semaphores: synchronisation.cpp): recorded before the call, with a stamp.
// Reports of uses of what has been destroyed need them. A call that fails has ended nothing, but
// what it was about is in use then, which is what the record is for.
// Missed: locks of the C++ library, whose destructors call nothing: they end with their memory.
#include <pthread.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"

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
