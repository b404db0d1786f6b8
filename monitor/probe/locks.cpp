// Locks. The stamp of an acquisition is taken while the lock is held, that of a release before it
// is given back, and the first is larger than the last one that was taken under the lock
// (last_stamps.h), so the stamps of one lock are in the order of its critical sections.
//
// What the unlock operations of glibc 2.36 execute decides what is recorded after the release:
//   mutex, rwlock      a locked instruction: the store buffer drains, a fence follows the release
//   spin lock          an ordinary store: nothing
// A wait on a condition is a release, a wait record (it splits the unit) and an acquisition.
// What does not change the lock executes no locked instruction that could be relied upon, and is
// not recorded: a mutex that its owner takes again or gives back for the time being, an unlock or a
// wait that fails. Missed: locks of libraries that do not call pthread functions through the
// dynamic linker.
#include <cerrno>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/lock_spin.h"
#include "monitor/probe/noise.h"
#include "monitor/probe/real.h"
#include "monitor/probe/runtime.h"
#include "monitor/probe/signals.h"

TSOMON_REAL(pthread_mutex_lock)
TSOMON_REAL(pthread_mutex_trylock)
TSOMON_REAL(pthread_mutex_timedlock)
TSOMON_REAL(pthread_mutex_clocklock)
TSOMON_REAL(pthread_mutex_unlock)
TSOMON_REAL(pthread_rwlock_rdlock)
TSOMON_REAL(pthread_rwlock_tryrdlock)
TSOMON_REAL(pthread_rwlock_timedrdlock)
TSOMON_REAL(pthread_rwlock_clockrdlock)
TSOMON_REAL(pthread_rwlock_wrlock)
TSOMON_REAL(pthread_rwlock_trywrlock)
TSOMON_REAL(pthread_rwlock_timedwrlock)
TSOMON_REAL(pthread_rwlock_clockwrlock)
TSOMON_REAL(pthread_rwlock_unlock)
TSOMON_REAL(pthread_spin_lock)
TSOMON_REAL(pthread_spin_trylock)
TSOMON_REAL(pthread_spin_unlock)
TSOMON_REAL_VERSION(pthread_cond_wait, "GLIBC_2.3.2")
TSOMON_REAL_VERSION(pthread_cond_timedwait, "GLIBC_2.3.2")
TSOMON_REAL(pthread_cond_clockwait)

using namespace tsomon::probe;

namespace {

constexpr int kMutexType = 3;
constexpr int kRobust = 16;         // PTHREAD_MUTEX_ROBUST_NORMAL_NP, which the headers do not show
constexpr int kOtherProtocol = 96;  // priority inheritance 32, priority ceiling 64

uint64_t id(const volatile void* lock) { return reinterpret_cast<uint64_t>(lock); }

// The lock is held: also when its owner died.
bool held(int result) { return result == 0 || result == EOWNERDEAD; }

// Whether the calling thread, which has just locked it, did so for the first time.
bool first_time(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & kMutexType) != PTHREAD_MUTEX_RECURSIVE_NP ||
         mutex->__data.__count == 1;
}
template <typename Lock>
bool first_time(const Lock*) {
  return true;
}

// Of a thread that was recorded when the hook began (slices.h).
pid_t own_id() {
  const Thread* const thread = local.thread != nullptr ? local.thread : local.own;
  return thread != nullptr ? thread->id : 0;
}

// Whether an unlock by the calling thread, which is recorded, gives the mutex back. Kinds that do
// not keep an owner always do.
bool gives_back(const pthread_mutex_t* mutex) {
  const int kind = mutex->__data.__kind & kMutexType;
  const bool owned = kind == PTHREAD_MUTEX_RECURSIVE_NP || kind == PTHREAD_MUTEX_ERRORCHECK_NP ||
                     (mutex->__data.__kind & kRobust) != 0;
  return !owned || (first_time(mutex) && mutex->__data.__owner == own_id());
}

using tsomon::Waited;

// A lock that is taken: the thread is going to sleep. What it does not get in the end it does not
// wait for any more.
template <typename Take>
int wait_for(Waited what, const volatile void* lock, uint64_t pc, Take take) {
  put_request(what, id(lock), pc);
  const int result = take();
  if (!held(result)) {
    requested_in_vain(pc);
  }
  return result;
}

// The word is looked at first: a try that fails is a locked instruction, and takes the cache line
// from the owner. Who has it already, of a recursive mutex, does not wait.
int take(pthread_mutex_t* mutex, uint64_t pc) {
  const auto free = [mutex] {
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 0;
  };
  if (TSOMON_LIKELY(free())) {
    return real_pthread_mutex_lock(mutex);
  }
  const int kind = mutex->__data.__kind;
  const bool own = mutex->__data.__owner == own_id();
  if (!own && (kind & (kRobust | kOtherProtocol)) == 0 &&
      spin([=] { return free() && real_pthread_mutex_trylock(mutex) == 0; })) {
    return 0;
  }
  const bool refuses = (kind & kMutexType) == PTHREAD_MUTEX_RECURSIVE_NP ||
                       (kind & kMutexType) == PTHREAD_MUTEX_ERRORCHECK_NP;
  if ((own && refuses) || free()) {
    return real_pthread_mutex_lock(mutex);
  }
  return wait_for(Waited::kLock, mutex, pc, [=] { return real_pthread_mutex_lock(mutex); });
}
// glibc looks before it tries.
int take_shared(pthread_rwlock_t* lock, uint64_t pc) {
  if (spin([lock] { return real_pthread_rwlock_tryrdlock(lock) == 0; }) ||
      real_pthread_rwlock_tryrdlock(lock) == 0) {
    return 0;
  }
  return wait_for(Waited::kReadLock, lock, pc, [lock] { return real_pthread_rwlock_rdlock(lock); });
}
int take(pthread_rwlock_t* lock, uint64_t pc) {
  if (spin([lock] { return real_pthread_rwlock_trywrlock(lock) == 0; }) ||
      real_pthread_rwlock_trywrlock(lock) == 0) {
    return 0;
  }
  return wait_for(Waited::kLock, lock, pc, [lock] { return real_pthread_rwlock_wrlock(lock); });
}
int take(pthread_spinlock_t* lock, uint64_t pc) {
  if (spin([lock] { return real_pthread_spin_trylock(lock) == 0; }) ||
      real_pthread_spin_trylock(lock) == 0) {
    return 0;
  }
  return wait_for(Waited::kLock, lock, pc, [lock] { return real_pthread_spin_lock(lock); });
}

// While the lock is held. Nothing is asked of what other threads left when this one is not
// recorded.
void acquired_now(RecordType type, uint64_t lock, uint64_t pc) {
  if (local.thread != nullptr) {
    put_point_after(type, lock, pc, last_stamp(lock));
  }
}
uint64_t releases_now(RecordType type, uint64_t lock, uint64_t pc) {
  const uint64_t now = put_point_now(type, lock, pc);
  if (now != 0) {
    leave_stamp(lock, now, type == RecordType::kReleaseShared);
  }
  return now;
}

template <typename Lock>
void acquired(int result, RecordType type, const Lock* lock, uint64_t pc) {
  if (held(result) && first_time(lock)) {
    acquired_now(type, id(lock), pc);
  }
}
// By a try, or within a time.
template <typename Lock>
void tried(int result, RecordType type, const Lock* lock, uint64_t pc) {
  if (held(result) && first_time(lock) && local.thread != nullptr) {
    put_point_now(RecordType::kTry, id(lock), pc);
    acquired_now(type, id(lock), pc);
  }
}

// The drain that a locked unlock performs lies between `released` and the thread's next stamp:
// between the two the thread returns from the unlock, which is a load, and that comes after the
// drain (stamp.h). stamp_max_age=0: a stamp of its own.
void drained(uint64_t released, uint64_t pc) {
  if (options.stamp_max_age != 0) {
    return put_drain(released, pc);
  }
  Context* const context = writable();
  if (context == nullptr || released == 0) {
    return;
  }
  constexpr uint32_t kSeparates = tsomon::capture::kSeparates;
  announce_stamp(*context);
  const uint64_t now = stamp_in_order(*context, true);
  tsomon::capture::put_record(context->encoder,
                              {RecordType::kFence, 0, kSeparates, 2, 0, pc, {released, now}});
  context->since = 0;
}

template <typename Unlock>
int release(RecordType type, const volatile void* lock, uint64_t pc, Unlock unlock) {
  const uint64_t now = releases_now(type, id(lock), pc);
  const int result = unlock();
  if (result == 0) {
    drained(now, pc);
  }
  noise();
  return result;
}

bool valid(const timespec* time) { return time->tv_nsec >= 0 && time->tv_nsec < 1000000000; }

template <typename Wait>
int wait(const volatile void* condition, const pthread_mutex_t* mutex, bool timed, uint64_t pc,
         Wait wait) {
  if (local.thread == nullptr || !gives_back(mutex)) {
    return wait();
  }
  drain_before_sleeping(pc);
  if (timed) {
    put_point_now(RecordType::kTry, id(condition), pc);
  }
  const uint64_t now = releases_now(RecordType::kRelease, id(mutex), pc);
  put_point_now(RecordType::kWait, id(condition), pc);
  // Cleanup handlers run with the mutex, too.
  Cancellation cancelled([now, mutex, pc] {
    drained(now, pc);
    receives_cancellation(pc);
    acquired_now(RecordType::kAcquire, id(mutex), pc);
  });
  const int result = wait();
  cancelled.returned();
  // A wait that timed out holds the mutex as well.
  if (held(result) || result == ETIMEDOUT) {
    drained(now, pc);
    acquired_now(RecordType::kAcquire, id(mutex), pc);
  }
  return result;
}

// A read lock's release is a locked instruction; a write lock's release is recorded as exclusive.
// Which of the two an unlock is, only the owner knows: a bit set per thread of the locks it has
// locked for writing would be needed; the word that glibc keeps says it as well.
bool held_for_writing(const pthread_rwlock_t* lock) {
  return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED) != 0;
}

}  // namespace

namespace explore = tsomon::explore;

namespace {

// Nobody is to know of the call: of a program that is not watched now it is what is done first, and all.
inline bool is_plain() { return local.thread == nullptr && !explore::active; }

// The same under control (monitor/explore/runtime).
int explored_mutex_lock(pthread_mutex_t* mutex, uint64_t pc) {
  return explore::mutex_lock(mutex, true, pc);
}
int explored_mutex_trylock(pthread_mutex_t* mutex, uint64_t pc) {
  return explore::mutex_lock(mutex, false, pc);
}
int explored_rwlock_rdlock(pthread_rwlock_t* lock, uint64_t pc) {
  return explore::object(explore::Op::kReadLock, lock, pc);
}
int explored_rwlock_tryrdlock(pthread_rwlock_t* lock, uint64_t pc) {
  return explore::object(explore::Op::kTryReadLock, lock, pc);
}
int explored_rwlock_wrlock(pthread_rwlock_t* lock, uint64_t pc) {
  return explore::object(explore::Op::kWriteLock, lock, pc);
}
int explored_rwlock_trywrlock(pthread_rwlock_t* lock, uint64_t pc) {
  return explore::object(explore::Op::kTryWriteLock, lock, pc);
}
int explored_spin_lock(pthread_spinlock_t* lock, uint64_t pc) {
  return explore::spin(explore::Op::kSpinLock, lock, pc);
}
int explored_spin_trylock(pthread_spinlock_t* lock, uint64_t pc) {
  return explore::spin(explore::Op::kSpinTryLock, lock, pc);
}

}  // namespace

#define TSOMON_TAKE(NAME, TYPE, LOCK, TAKE, TAKEN)      \
  TSOMON_HOOK int pthread_##NAME(LOCK* lock) {          \
    if (TSOMON_LIKELY(is_plain())) {                    \
      return real_pthread_##NAME(lock);                 \
    }                                                   \
    if (TSOMON_UNLIKELY(explore::active)) {             \
      return explored_##NAME(lock, TSOMON_PC());        \
    }                                                   \
    noise();                                            \
    const int result = TAKE(lock, TSOMON_PC());         \
    TAKEN(result, RecordType::TYPE, lock, TSOMON_PC()); \
    return result;                                      \
  }
#define TSOMON_REAL_TRY(NAME) [](auto* lock, uint64_t) { return real_pthread_##NAME(lock); }
#define TSOMON_TRY(NAME, TYPE, LOCK) TSOMON_TAKE(NAME, TYPE, LOCK, TSOMON_REAL_TRY(NAME), tried)
// glibc looks at the time only where it has to wait.
#define TSOMON_IF_EXPLORED_UNTIL(OP, LOCK, TIME)                                    \
  if (TSOMON_UNLIKELY(explore::active)) {                                           \
    return valid(TIME) ? explore::take_until(OP, LOCK, TIME, TSOMON_PC()) : EINVAL; \
  }
#define TSOMON_TIMED(NAME, TYPE, LOCK, OP)                           \
  TSOMON_HOOK int pthread_##NAME(LOCK* lock, const timespec* time) { \
    TSOMON_IF_EXPLORED_UNTIL(OP, lock, time)                         \
    noise();                                                         \
    const int result = real_pthread_##NAME(lock, time);              \
    tried(result, RecordType::TYPE, lock, TSOMON_PC());              \
    return result;                                                   \
  }
#define TSOMON_CLOCK(NAME, TYPE, LOCK, OP)                                            \
  TSOMON_HOOK int pthread_##NAME(LOCK* lock, clockid_t clock, const timespec* time) { \
    TSOMON_IF_EXPLORED_UNTIL(OP, lock, time)                                          \
    noise();                                                                          \
    const int result = real_pthread_##NAME(lock, clock, time);                        \
    tried(result, RecordType::TYPE, lock, TSOMON_PC());                               \
    return result;                                                                    \
  }

TSOMON_TAKE(mutex_lock, kAcquire, pthread_mutex_t, take, acquired)
TSOMON_TRY(mutex_trylock, kAcquire, pthread_mutex_t)
TSOMON_TIMED(mutex_timedlock, kAcquire, pthread_mutex_t, explore::Op::kLock)
TSOMON_CLOCK(mutex_clocklock, kAcquire, pthread_mutex_t, explore::Op::kLock)
TSOMON_TAKE(rwlock_rdlock, kAcquireShared, pthread_rwlock_t, take_shared, acquired)
TSOMON_TRY(rwlock_tryrdlock, kAcquireShared, pthread_rwlock_t)
TSOMON_TIMED(rwlock_timedrdlock, kAcquireShared, pthread_rwlock_t, explore::Op::kReadLock)
TSOMON_CLOCK(rwlock_clockrdlock, kAcquireShared, pthread_rwlock_t, explore::Op::kReadLock)
TSOMON_TAKE(rwlock_wrlock, kAcquire, pthread_rwlock_t, take, acquired)
TSOMON_TRY(rwlock_trywrlock, kAcquire, pthread_rwlock_t)
TSOMON_TIMED(rwlock_timedwrlock, kAcquire, pthread_rwlock_t, explore::Op::kWriteLock)
TSOMON_CLOCK(rwlock_clockwrlock, kAcquire, pthread_rwlock_t, explore::Op::kWriteLock)
TSOMON_TAKE(spin_lock, kAcquire, pthread_spinlock_t, take, acquired)
TSOMON_TRY(spin_trylock, kAcquire, pthread_spinlock_t)

TSOMON_HOOK int pthread_mutex_unlock(pthread_mutex_t* lock) {
  if (TSOMON_LIKELY(is_plain())) {
    return real_pthread_mutex_unlock(lock);
  }
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::mutex_unlock(lock, TSOMON_PC());
  }
  if (!gives_back(lock)) {
    return real_pthread_mutex_unlock(lock);
  }
  return release(RecordType::kRelease, lock, TSOMON_PC(),
                 [lock] { return real_pthread_mutex_unlock(lock); });
}

TSOMON_HOOK int pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  if (TSOMON_LIKELY(is_plain())) {
    return real_pthread_rwlock_unlock(lock);
  }
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::object(explore::Op::kReadWriteUnlock, lock, TSOMON_PC());
  }
  return release(held_for_writing(lock) ? RecordType::kRelease : RecordType::kReleaseShared, lock,
                 TSOMON_PC(), [lock] { return real_pthread_rwlock_unlock(lock); });
}

TSOMON_HOOK int pthread_spin_unlock(pthread_spinlock_t* lock) {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::spin(explore::Op::kStore, lock, TSOMON_PC());
  }
  releases_now(RecordType::kRelease, id(lock), TSOMON_PC());
  const int result = real_pthread_spin_unlock(lock);
  noise();
  return result;
}

TSOMON_HOOK int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::condition_wait(condition, mutex, nullptr, TSOMON_PC());
  }
  return wait(condition, mutex, false, TSOMON_PC(),
              [=] { return real_pthread_cond_wait(condition, mutex); });
}
TSOMON_HOOK int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                       const timespec* time) {
  if (TSOMON_UNLIKELY(explore::active) && valid(time)) {
    return explore::condition_wait(condition, mutex, time, TSOMON_PC());
  }
  if (!valid(time)) {
    return real_pthread_cond_timedwait(condition, mutex, time);
  }
  return wait(condition, mutex, true, TSOMON_PC(),
              [=] { return real_pthread_cond_timedwait(condition, mutex, time); });
}
TSOMON_HOOK int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                       clockid_t clock, const timespec* time) {
  if (TSOMON_UNLIKELY(explore::active) && valid(time) &&
      (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)) {
    return explore::condition_wait(condition, mutex, time, TSOMON_PC());
  }
  if (!valid(time) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)) {
    return real_pthread_cond_clockwait(condition, mutex, clock, time);
  }
  return wait(condition, mutex, true, TSOMON_PC(),
              [=] { return real_pthread_cond_clockwait(condition, mutex, clock, time); });
}
