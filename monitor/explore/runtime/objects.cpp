// Locks, condition variables, semaphores, barriers, one-time initialisation; time.
#include <cerrno>
#include <climits>

#include <semaphore.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/explore/runtime/state.h"
#include "monitor/probe/copy.h"

namespace tsomon::explore {
namespace {

uint64_t id(const volatile void* object) { return reinterpret_cast<uint64_t>(object); }

Done on_object(Op op, const volatile void* object, uint64_t pc, Value a = 0, bool timed = false) {
  Operation operation;
  operation.op = op;
  operation.address = id(object);
  operation.size = 16;
  operation.a = a;
  operation.timed = timed;
  operation.pc = pc;
  const Done done = step(operation);
  check_alive(operation.address, pc);
  return done;
}

// How often its owner has taken a recursive mutex, beyond the first time.
struct Depth {
  const pthread_mutex_t* mutex;
  uint32_t owner;  // 1 + its number
  uint32_t deeper;
};
constexpr uint32_t kDepths = 1024;
Depth depths[kDepths];

Depth& depth_of(const pthread_mutex_t* mutex) {
  for (Depth& depth : depths) {
    if (depth.mutex == mutex || depth.mutex == nullptr) {
      depth.mutex = mutex;
      return depth;
    }
  }
  end_run(End::kFailed, "more than 1024 recursive mutexes");
}

bool is_kind(const pthread_mutex_t* mutex, int kind) { return (mutex->__data.__kind & 3) == kind; }
bool keeps_owner(const pthread_mutex_t* mutex) {
  return is_kind(mutex, PTHREAD_MUTEX_RECURSIVE_NP) || is_kind(mutex, PTHREAD_MUTEX_ERRORCHECK_NP);
}

}  // namespace

int object(Op op, const volatile void* what, uint64_t pc, bool timed) {
  const Done done = on_object(op, what, pc, 0, timed);
  return done.read == done.written && (op == Op::kTryReadLock || op == Op::kTryWriteLock) ? EBUSY
                                                                                          : 0;
}

bool keeps(const pthread_mutex_t* mutex) {
  return keeps_owner(mutex) && depth_of(mutex).owner == this_thread() + 1;
}

int mutex_lock(pthread_mutex_t* mutex, bool waits, uint64_t pc, bool timed) {
  if (keeps_owner(mutex)) {
    Depth& depth = depth_of(mutex);
    if (depth.owner == this_thread() + 1) {
      if (is_kind(mutex, PTHREAD_MUTEX_ERRORCHECK_NP)) {
        return waits ? EDEADLK : EBUSY;
      }
      ++depth.deeper;
      return 0;
    }
  }
  const Done done = on_object(waits ? Op::kLock : Op::kTryLock, mutex, pc, 0, timed);
  if (done.read != 0) {
    return EBUSY;
  }
  if (keeps_owner(mutex)) {
    depth_of(mutex).owner = this_thread() + 1;
  }
  return 0;
}

int mutex_unlock(pthread_mutex_t* mutex, uint64_t pc) {
  if (keeps_owner(mutex)) {
    Depth& depth = depth_of(mutex);
    if (depth.owner != this_thread() + 1) {
      return EPERM;
    }
    if (depth.deeper != 0) {
      --depth.deeper;
      return 0;
    }
    depth.owner = 0;
  }
  on_object(Op::kUnlock, mutex, pc);
  return 0;
}

int spin(Op op, const volatile void* lock, uint64_t pc) {
  Operation operation;
  operation.op = op;
  operation.address = id(lock);
  operation.size = sizeof(pthread_spinlock_t);
  operation.a = 1;  // of a store: the lock is free
  operation.pc = pc;
  const Done done = step(operation);
  return op == Op::kSpinTryLock && done.read != 1 ? EBUSY : 0;
}

int semaphore(Op op, void* what, uint64_t pc, bool timed) {
  Operation operation;
  operation.op = op;
  operation.address = id(what);
  operation.size = 16;
  operation.timed = timed;
  operation.pc = pc;
  const Done done = step(operation);
  if (op == Op::kSemaphoreTryWait && done.read == 0) {
    errno = EAGAIN;
    return -1;
  }
  return 0;
}

int barrier_wait(pthread_barrier_t* barrier, uint64_t pc) {
  // glibc: rounds begun, this round's first, how many come together.
  uint32_t words[3] = {};
  probe::copy(words, barrier, sizeof words);
  const Done arrived = on_object(Op::kBarrierArrive, barrier, pc, words[2]);
  if (arrived.read >> 32 != arrived.written >> 32) {
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  on_object(Op::kBarrierLeave, barrier, pc, arrived.read >> 32);
  return 0;
}

int once(pthread_once_t* control, void (*routine)(), uint64_t pc) {
  if (on_object(Op::kOnceEnter, control, pc).read == 0) {
    routine();  // an exception leaves it begun, which no thread gets past
    on_object(Op::kOnceLeave, control, pc, 2);
  }
  return 0;
}

int guard_acquire(uint64_t* guard, uint64_t pc) {
  return on_object(Op::kOnceEnter, guard, pc).read == 0 ? 1 : 0;
}

void guard_release(uint64_t* guard, bool done, uint64_t pc) {
  if (done) {
    store<uint8_t>(reinterpret_cast<volatile uint8_t*>(guard), 1, 3);
  }
  on_object(Op::kOnceLeave, guard, pc, done ? 2 : 0);
}

namespace {

constexpr int64_t kFirstTime = 1'000'000'000'000'000;
int64_t passed[kMaxThreads + 1];  // of each thread: what one reads depends on itself alone
uint32_t stood[kMaxThreads + 1];  // calls to which it was the same time

// A thread that wakes for nothing, looks and waits again comes to the same state only if its clock
// stands. It goes on after a while: the thread may wait for a time.
bool time_stands() {
  constexpr uint32_t kMost = 64;
  if (threads[this_thread()].wakes == 0) {
    stood[this_thread()] = 0;
    return false;
  }
  return stood[this_thread()]++ < kMost;
}

}  // namespace

int64_t virtual_time() {
  leaves_loop();
  int64_t& mine = passed[this_thread()];
  mine += time_stands() ? 0 : 1000;
  return kFirstTime + mine;
}
void pass_time(int64_t nanoseconds) { passed[this_thread()] += nanoseconds > 0 ? nanoseconds : 0; }

void pass_time_until(const timespec& until) {
  int64_t& mine = passed[this_thread()];
  constexpr int64_t kMostSeconds = int64_t{1} << 32;
  const int64_t seconds = until.tv_sec < kMostSeconds ? until.tv_sec : kMostSeconds;
  const int64_t then = seconds * 1'000'000'000 + until.tv_nsec - kFirstTime;
  mine = then > mine ? then : mine;
}

}  // namespace tsomon::explore
