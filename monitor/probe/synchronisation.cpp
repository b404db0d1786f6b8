// Semaphores, barriers, one-time initialisation.
//
// Semaphores   their count at first; a post before the call that posts, a take behind the call that
//              took.
// Barriers     what comes before an arrival comes before what follows a departure of the same round
//              (kSend, kReceive: a channel for each round). The round of an arrival is how many
//              have arrived, by glibc's counter (nptl/pthread_barrier_wait.c, 2.23 and later:
//              arrivals, current round, threads of a round), as long as no more threads are
//              inside than make a round. Where more are, all that arrives comes before all that
//              departs later: no order is missed, some are made up.
// Once         pthread_once, call_once, guards of local statics: what the call that ran did comes
//              before what follows every other call, and so does what a call that ended by an
//              exception did. Of a guard its release is an exchange as well, for the compiler's own
//              look at it, which is an atomic load (ThreadSanitizer's hooks).
// What the calls do to the objects is not recorded.
#include <atomic>
#include <cstdarg>

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/before_start.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"
#include "tso/model/channels.h"

TSOMON_REAL(sem_init)
TSOMON_REAL(sem_destroy)
TSOMON_REAL(sem_open)
TSOMON_REAL(sem_post)
TSOMON_REAL(sem_wait)
TSOMON_REAL(sem_trywait)
TSOMON_REAL(sem_timedwait)
TSOMON_REAL(sem_clockwait)
TSOMON_REAL(pthread_barrier_wait)
TSOMON_REAL(pthread_once)

// Of the C++ runtime; looked up only when called, so C programs need not have them.
extern "C" {
int __cxa_guard_acquire(uint64_t* guard);
void __cxa_guard_release(uint64_t* guard);
void __cxa_guard_abort(uint64_t* guard);
}
TSOMON_REAL(__cxa_guard_acquire)
TSOMON_REAL(__cxa_guard_release)
TSOMON_REAL(__cxa_guard_abort)

using namespace tsomon::probe;

namespace explore = tsomon::explore;

namespace {

uint64_t id(const volatile void* object) { return reinterpret_cast<uint64_t>(object); }

bool is_barrier_result(int result) {
  return result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD;
}

}  // namespace

namespace {

// The stamps of a semaphore grow from its posts to the takes that they let go on.
void posts(sem_t* semaphore, uint64_t pc) {
  noise();
  if (const uint64_t now = put_point_now(RecordType::kPost, id(semaphore), pc); now != 0) {
    leave_stamp(id(semaphore), now, true);
  }
}
int took(int result, sem_t* semaphore, uint64_t pc) {
  if (result == 0 && local.thread != nullptr) {
    put_point_after(RecordType::kTake, id(semaphore), pc, last_stamp(id(semaphore)));
  }
  noise();
  return result;
}

// Whether a wait for it sleeps, and only this process can end that: glibc's count and, in the 4 bytes
// behind the 8 of the count and the number of those that wait, whether it is shared.
bool is_empty(const sem_t* semaphore) {
  const auto* const words = reinterpret_cast<const uint32_t*>(semaphore);
  return __atomic_load_n(words, __ATOMIC_RELAXED) == 0 && words[2] == 0;
}

// Named semaphores that were opened; of those that find no place the count is not known.
constexpr size_t kNamed = 256;
std::atomic<sem_t*> named[kNamed];
bool is_first(sem_t* semaphore) {
  for (auto& one : named) {
    sem_t* known = nullptr;
    if (one.compare_exchange_strong(known, semaphore)) {
      return true;
    }
    if (known == semaphore) {
      return false;
    }
  }
  return false;
}

}  // namespace

// Under control (monitor/explore/runtime).
#define TSOMON_IF_EXPLORED(...)           \
  if (TSOMON_UNLIKELY(explore::active)) { \
    return explore::__VA_ARGS__;          \
  }

// One that was made before recording began has the count that it has then.
static void counts(sem_t* semaphore, uint64_t pc) {
  if (activated()) {
    put_count(semaphore, pc);
  } else {
    keep_semaphore(semaphore);
  }
}

TSOMON_HOOK int sem_init(sem_t* semaphore, int shared, unsigned count) noexcept {
  const int result = real_sem_init(semaphore, shared, count);
  if (result == 0 && recording) {
    counts(semaphore, TSOMON_PC());
  }
  return result;
}
TSOMON_HOOK int sem_destroy(sem_t* semaphore) noexcept {
  if (!activated()) {
    forget_semaphore(semaphore);
  } else {
    put_point_now(RecordType::kDestroy, reinterpret_cast<uint64_t>(semaphore), TSOMON_PC());
  }
  return real_sem_destroy(semaphore);
}

// One that has been opened before is the same one: what it is known by has its count already.
TSOMON_HOOK sem_t* sem_open(const char* name, int flags, ...) {
  mode_t mode = 0;
  unsigned count = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    count = va_arg(rest, unsigned);
    va_end(rest);
  }
  sem_t* const semaphore = real_sem_open(name, flags, mode, count);
  if (semaphore != SEM_FAILED && recording && is_first(semaphore)) {
    counts(semaphore, TSOMON_PC());
  }
  return semaphore;
}

TSOMON_HOOK int sem_post(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphorePost, semaphore, TSOMON_PC()))
  posts(semaphore, TSOMON_PC());
  return real_sem_post(semaphore);
}
TSOMON_HOOK int sem_wait(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphoreWait, semaphore, TSOMON_PC()))
  drain_before_sleeping(TSOMON_PC());
  const bool sleeps = local.thread != nullptr && is_empty(semaphore);
  if (sleeps) {
    put_request(tsomon::Waited::kSemaphore, id(semaphore), TSOMON_PC());
  }
  const int result = took(real_sem_wait(semaphore), semaphore, TSOMON_PC());
  if (sleeps && result != 0) {
    requested_in_vain(TSOMON_PC());
  }
  return result;
}
TSOMON_HOOK int sem_trywait(sem_t* semaphore) {
  TSOMON_IF_EXPLORED(semaphore(explore::Op::kSemaphoreTryWait, semaphore, TSOMON_PC()))
  return took(real_sem_trywait(semaphore), semaphore, TSOMON_PC());
}
TSOMON_HOOK int sem_timedwait(sem_t* semaphore, const timespec* time) {
  TSOMON_IF_EXPLORED(take_until(explore::Op::kSemaphoreWait, semaphore, time, TSOMON_PC()))
  drain_before_sleeping(TSOMON_PC());
  return took(real_sem_timedwait(semaphore, time), semaphore, TSOMON_PC());
}
TSOMON_HOOK int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  TSOMON_IF_EXPLORED(take_until(explore::Op::kSemaphoreWait, semaphore, time, TSOMON_PC()))
  drain_before_sleeping(TSOMON_PC());
  return took(real_sem_clockwait(semaphore, clock, time), semaphore, TSOMON_PC());
}

// glibc's struct pthread_barrier begins so.
struct Barrier {
  uint32_t arrived;
  uint32_t current_round;
  uint32_t count;
};

// Barriers by their address; those that share a place only seem more crowded than they are.
struct Inside {
  std::atomic<uint32_t> threads{0};
  std::atomic<bool> crowded{false};
};
constexpr uint32_t kBarriers = 1024;
static Inside barriers[kBarriers];

static Inside& inside_of(const pthread_barrier_t* barrier) {
  return barriers[(id(barrier) >> 4) * 0x9E3779B97F4A7C15 >> 54];
}
static_assert(kBarriers == 1U << (64 - 54));

static uint64_t round_channel(const pthread_barrier_t* barrier, uint32_t round) {
  return tsomon::kFirstRound | uint64_t{round & 0xFFFU} << 48 | id(barrier);
}

TSOMON_HOOK int pthread_barrier_wait(pthread_barrier_t* barrier) {
  TSOMON_IF_EXPLORED(barrier_wait(barrier, TSOMON_PC()))
  Inside& inside = inside_of(barrier);
  const auto* const state = reinterpret_cast<const Barrier*>(barrier);
  const uint32_t count = state->count;
  const uint32_t now = inside.threads.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (now > count) {
    inside.crowded.store(true, std::memory_order_release);
  }
  const uint32_t round =
      count == 0 ? 0 : __atomic_load_n(&state->arrived, __ATOMIC_RELAXED) / count;
  put_send(round_channel(barrier, round), TSOMON_PC());
  put_promise(barrier, TSOMON_PC());  // for when it is crowded; the buffer is empty
  const int result = real_pthread_barrier_wait(barrier);
  if (is_barrier_result(result)) {
    put_receive(inside.crowded.load(std::memory_order_acquire) ? id(barrier)
                                                               : round_channel(barrier, round),
                TSOMON_PC());
  }
  inside.threads.fetch_sub(1, std::memory_order_acq_rel);
  return result;
}

// What is recorded after it took place must not be promised away (chunk_writer.cpp).
static void unrecorded(bool begins) {
  if (local.thread != nullptr) {
    local.thread->unrecorded.store(begins, std::memory_order_relaxed);
  }
}

namespace {

// A call of pthread_once. Its routine may call it again, for another control, and may throw.
struct OnceCall {
  OnceCall(pthread_once_t* control, void (*function)(), uint64_t caller);
  OnceCall(const OnceCall&) = delete;
  OnceCall& operator=(const OnceCall&) = delete;
  ~OnceCall();

  pthread_once_t* once;
  void (*routine)();
  uint64_t pc;
  OnceCall* outer;
  bool ran = false;
};
__thread OnceCall* once_call;

OnceCall::OnceCall(pthread_once_t* control, void (*function)(), uint64_t caller)
    : once(control), routine(function), pc(caller), outer(once_call) {
  once_call = this;
  unrecorded(true);
}
OnceCall::~OnceCall() {
  once_call = outer;
  unrecorded(false);
}

struct SendsAtEnd {
  SendsAtEnd(const volatile void* control, uint64_t caller) : object(control), pc(caller) {}
  SendsAtEnd(const SendsAtEnd&) = delete;
  SendsAtEnd& operator=(const SendsAtEnd&) = delete;
  ~SendsAtEnd() { put_send(id(object), pc); }

  const volatile void* object;
  uint64_t pc;
};

void run_once_routine() {
  OnceCall& call = *once_call;
  unrecorded(false);
  put_receive(id(call.once), call.pc);  // from a call that threw
  {
    const SendsAtEnd sends(call.once, call.pc);
    call.routine();
  }
  call.ran = true;
  unrecorded(true);
}

}  // namespace

TSOMON_HOOK int pthread_once(pthread_once_t* once, void (*routine)()) {
  TSOMON_IF_EXPLORED(once(once, routine, TSOMON_PC()))
  if (local.thread == nullptr) {
    return real_pthread_once(once, routine);
  }
  OnceCall call(once, routine, TSOMON_PC());
  const int result = real_pthread_once(once, run_once_routine);
  if (!call.ran) {
    put_receive(id(once), call.pc);
  }
  return result;
}

// In the C library it calls the other one without the dynamic linker.
TSOMON_HOOK void call_once(once_flag* flag, void (*routine)()) {
  static_assert(sizeof(once_flag) == sizeof(pthread_once_t));
  pthread_once(reinterpret_cast<pthread_once_t*>(flag), routine);
}

TSOMON_HOOK int __cxa_guard_acquire(uint64_t* guard) {
  TSOMON_IF_EXPLORED(guard_acquire(guard, TSOMON_PC()))
  const int result = real___cxa_guard_acquire(guard);
  put_receive(id(guard), TSOMON_PC());
  return result;
}
TSOMON_HOOK void __cxa_guard_release(uint64_t* guard) {
  TSOMON_IF_EXPLORED(guard_release(guard, true, TSOMON_PC()))
  put_send(id(guard), TSOMON_PC());
  // Of its first byte, at which the compiler's code looks: an exchange that leaves 1 there.
  Operation exchange(RecordType::kAtomicReadModifyWrite, guard, 1, 2, TSOMON_PC(), kLockedShare);
  real___cxa_guard_release(guard);
  exchange.done(true, 0, 1);
}
TSOMON_HOOK void __cxa_guard_abort(uint64_t* guard) {
  TSOMON_IF_EXPLORED(guard_release(guard, false, TSOMON_PC()))
  put_send(id(guard), TSOMON_PC());
  real___cxa_guard_abort(guard);
}
