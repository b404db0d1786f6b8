// Semaphores, barriers, one-time initialisation.
//
// Semaphores and barriers: a locked operation on the object without values, in the interval of the
// call. Calls whose intervals do not meet are ordered as they executed; a wait that was blocked
// overlaps the post that released it, and their order is left open (sound; costs precision).
// One-time initialisation: completing it is a store to the control word or guard, finding it
// complete a load of it, both without value. The locks inside are not recorded.
#include <pthread.h>
#include <semaphore.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"

TSOMON_REAL(sem_post)
TSOMON_REAL(sem_wait)
TSOMON_REAL(sem_trywait)
TSOMON_REAL(sem_timedwait)
TSOMON_REAL(sem_clockwait)
TSOMON_REAL(pthread_barrier_wait)
TSOMON_REAL(pthread_once)

// Of the C++ runtime; looked up only when called, so C programs need not have them.
extern "C" {
void __cxa_guard_release(uint64_t* guard);
}
TSOMON_REAL(__cxa_guard_release)

using namespace tsomon::probe;

namespace explore = tsomon::explore;

namespace {

// The count of a semaphore is in its first four bytes; four bytes of a barrier stand for all.
constexpr uint32_t kSize = 4;

template <typename Call>
int locked(const volatile void* object, uint64_t pc, bool (*worked)(int), Call call) {
  Operation operation(RecordType::kAtomicReadModifyWrite, object, kSize, 0, pc, kLockedShare);
  const int result = call();
  // What failed may have been no more than a load.
  if (worked(result)) {
    operation.done(true);
  } else {
    operation.was_load();
  }
  return result;
}

bool is_zero(int result) { return result == 0; }
bool is_barrier_result(int result) {
  return result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD;
}

}  // namespace

// Under control (monitor/explore/runtime).
#define TSOMON_IF_EXPLORED(...)           \
  if (TSOMON_UNLIKELY(explore::active)) { \
    return explore::__VA_ARGS__;          \
  }

TSOMON_HOOK int sem_post(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphorePost, semaphore, TSOMON_PC()))
  return locked(semaphore, TSOMON_PC(), is_zero, [=] { return real_sem_post(semaphore); });
}
TSOMON_HOOK int sem_wait(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphoreWait, semaphore, TSOMON_PC()))
  drain_before_sleeping(TSOMON_PC());
  return locked(semaphore, TSOMON_PC(), is_zero, [=] { return real_sem_wait(semaphore); });
}
TSOMON_HOOK int sem_trywait(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphoreTryWait, semaphore, TSOMON_PC()))
  return locked(semaphore, TSOMON_PC(), is_zero, [=] { return real_sem_trywait(semaphore); });
}
TSOMON_HOOK int sem_timedwait(sem_t* semaphore, const timespec* time) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::refuse("sem_timedwait");
  }
  drain_before_sleeping(TSOMON_PC());
  return locked(semaphore, TSOMON_PC(), is_zero,
                [=] { return real_sem_timedwait(semaphore, time); });
}
TSOMON_HOOK int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::refuse("sem_clockwait");
  }
  drain_before_sleeping(TSOMON_PC());
  return locked(semaphore, TSOMON_PC(), is_zero,
                [=] { return real_sem_clockwait(semaphore, clock, time); });
}

TSOMON_HOOK int pthread_barrier_wait(pthread_barrier_t* barrier) {
  TSOMON_IF_EXPLORED(barrier_wait(barrier, TSOMON_PC()))
  drain_before_sleeping(TSOMON_PC());
  return locked(barrier, TSOMON_PC(), is_barrier_result,
                [=] { return real_pthread_barrier_wait(barrier); });
}

// Whether this call ran the routine decides between a store and a load.
static __thread void (*once_routine)();
// What is recorded after it took place must not be promised away (chunk_writer.cpp).
static void unrecorded(bool begins) {
  if (local.thread != nullptr) {
    local.thread->unrecorded.store(begins, std::memory_order_relaxed);
  }
}
static void run_once_routine() {
  void (*const routine)() = once_routine;
  unrecorded(false);
  routine();
  unrecorded(true);
  once_routine = nullptr;  // ran
}
TSOMON_HOOK int pthread_once(pthread_once_t* once, void (*routine)()) {
  TSOMON_IF_EXPLORED(once(once, routine, TSOMON_PC()))
  void (*const outer)() = once_routine;
  once_routine = routine;
  unrecorded(true);
  const int result = real_pthread_once(once, run_once_routine);
  const bool ran = once_routine == nullptr;
  once_routine = outer;
  access_always(ran ? RecordType::kWrite : RecordType::kRead, once, sizeof(*once), TSOMON_PC());
  unrecorded(false);
  return result;
}

TSOMON_HOOK void __cxa_guard_release(uint64_t* guard) {
  TSOMON_IF_EXPLORED(guard_release(guard, true, TSOMON_PC()))
  locked(guard, TSOMON_PC(), is_zero, [=] {
    real___cxa_guard_release(guard);
    return 0;
  });
}
