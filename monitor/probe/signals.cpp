// Orders that signals make: what a thread did before it sent one, or had one sent by a timer, comes
// before what the handler does, or what follows a sigwait or a read from a signalfd that got it. So
// does what it did before it installed the handler.
//
// Records     kSend before the call, kReceive when the handler begins or the wait has returned, on a
//             channel for each number; timers, whose signal is not known, send on one that all
//             receive. More than the kernel orders is ordered: any sending of a number comes before
//             all that later get it, whoever it was for. A signal that a thread sends itself is in
//             its program order.
// Cancelling  pthread_cancel is a send, on the channel of the C library's own signal for it. A thread that is cancelled while
//             it sleeps receives it before its cleanup handlers run (Cancellation), and has its mutex again (locks.cpp).
// Misses      Signals that are sent by system calls by number; where a thread is cancelled that does not sleep in a call of
//             blocking_calls.cpp or wait on a condition.
#include "monitor/probe/signals.h"

#include <atomic>
#include <cerrno>
#include <csignal>

#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/descriptors.h"
#include "monitor/probe/operation.h"
#include "monitor/probe/real.h"
#include "tso/model/channels.h"

namespace tsomon::probe {
namespace {

constexpr int kAny = 0;  // there is no such signal
constexpr int kSignalDescriptors = 1000;
std::atomic<bool> descriptors{false};

uint64_t channel(int number) { return kFirstSignal | static_cast<uint32_t>(number); }

}  // namespace

void sends_signal(int number, uint64_t pc) {
  put_send(channel(number), pc);
  if (descriptors.load(std::memory_order_relaxed)) {
    put_send(channel(kSignalDescriptors), pc);
  }
}

void receives_signal(int number, uint64_t pc) {
  put_receive(channel(number), pc);
  put_receive(channel(kAny), pc);
}

void receives_signal_by_descriptor(uint64_t pc) {
  put_receive(channel(kSignalDescriptors), pc);
  put_receive(channel(kAny), pc);
}

void receives_cancellation(uint64_t pc) { put_receive(kCancellation, pc); }

}  // namespace tsomon::probe

using namespace tsomon::probe;

namespace explore = tsomon::explore;

#define TSOMON_LOOKED_UP(NAME)                                               \
  TSOMON_REAL(NAME)                                                          \
  namespace {                                                                \
  __attribute__((constructor(101))) void look_up_##NAME() { next_##NAME(); } \
  }
#define TSOMON_SENDS_SIGNAL(RESULT, NAME, PARAMETERS, ARGUMENTS, NUMBER, ...) \
  TSOMON_LOOKED_UP(NAME)                                                      \
  TSOMON_HOOK RESULT NAME PARAMETERS __VA_ARGS__ {                            \
    sends_signal(NUMBER, TSOMON_PC());                                        \
    return real_##NAME ARGUMENTS;                                             \
  }

TSOMON_SENDS_SIGNAL(int, kill, (pid_t process, int number), (process, number), number, noexcept)
TSOMON_SENDS_SIGNAL(int, sigqueue, (pid_t process, int number, const union sigval value),
                    (process, number, value), number, noexcept)
TSOMON_SENDS_SIGNAL(int, pthread_sigqueue, (pthread_t thread, int number, const union sigval value),
                    (thread, number, value), number, noexcept)
TSOMON_SENDS_SIGNAL(int, tgkill, (pid_t process, pid_t thread, int number),
                    (process, thread, number), number, noexcept)
TSOMON_SENDS_SIGNAL(int, timer_settime,
                    (timer_t timer, int flags, const itimerspec* time, itimerspec* old),
                    (timer, flags, time, old), kAny, noexcept)
TSOMON_SENDS_SIGNAL(unsigned, alarm, (unsigned seconds), (seconds), SIGALRM, noexcept)
TSOMON_SENDS_SIGNAL(useconds_t, ualarm, (useconds_t time, useconds_t interval), (time, interval),
                    SIGALRM, noexcept)

TSOMON_LOOKED_UP(setitimer)
TSOMON_HOOK int setitimer(__itimer_which_t which, const itimerval* time, itimerval* old) noexcept {
  sends_signal(which == ITIMER_REAL      ? SIGALRM
               : which == ITIMER_VIRTUAL ? SIGVTALRM
                                         : SIGPROF,
               TSOMON_PC());
  return real_setitimer(which, time, old);
}

TSOMON_LOOKED_UP(pthread_cancel)
TSOMON_HOOK int pthread_cancel(pthread_t thread) {
  put_send(tsomon::kCancellation, TSOMON_PC());
  return real_pthread_cancel(thread);
}

TSOMON_LOOKED_UP(pthread_kill)
TSOMON_HOOK int pthread_kill(pthread_t handle, int number) noexcept {
  // abort() and raise() send themselves a signal inside the C library, not by this.
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::refuse("pthread_kill");
  }
  sends_signal(number, TSOMON_PC());
  return real_pthread_kill(handle, number);
}

// They may sleep (blocking_calls.cpp).
template <typename Call>
static int waits_for_signal(uint64_t pc, Call call) {
  if (local.thread == nullptr) {
    return call();
  }
  drain_before_sleeping(pc);
  const int number = call();
  const int error = errno;
  if (number > 0) {
    receives_signal(number, pc);
  } else {
    put_stamp_now();
  }
  errno = error;
  return number;
}

TSOMON_LOOKED_UP(sigwait)
TSOMON_HOOK int sigwait(const sigset_t* set, int* number) {
  int result = 0;
  waits_for_signal(TSOMON_PC(), [&] {
    result = real_sigwait(set, number);
    return result == 0 ? *number : 0;
  });
  return result;
}
TSOMON_LOOKED_UP(sigwaitinfo)
TSOMON_HOOK int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return waits_for_signal(TSOMON_PC(), [=] { return real_sigwaitinfo(set, info); });
}
TSOMON_LOOKED_UP(sigtimedwait)
TSOMON_HOOK int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* time) {
  return waits_for_signal(TSOMON_PC(), [=] { return real_sigtimedwait(set, info, time); });
}

TSOMON_LOOKED_UP(signalfd)
TSOMON_HOOK int signalfd(int old, const sigset_t* set, int flags) noexcept {
  descriptors.store(true, std::memory_order_relaxed);
  const int descriptor = real_signalfd(old, set, flags);
  if (descriptor >= 0 && old < 0) {
    descriptor_begins(descriptor, TSOMON_PC());
    gets_signals(descriptor);
  }
  return descriptor;
}
