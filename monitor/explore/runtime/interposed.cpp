// Functions that only programs under control need: elsewhere each calls the next definition.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <linux/futex.h>
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "monitor/explore/runtime/in_place.h"
#include "monitor/explore/runtime/kernel.h"
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/last_thread.h"
#include "monitor/probe/real.h"
#include "monitor/probe/records.h"
#include "monitor/probe/runtime.h"

extern "C" {
void __assert_fail(const char* assertion, const char* file, unsigned line,
                   const char* function) noexcept;
}
TSOMON_REAL(__assert_fail)
TSOMON_REAL(sched_yield)
TSOMON_REAL(clock_gettime)
TSOMON_REAL(pthread_exit)
TSOMON_REAL(pthread_cancel)
TSOMON_REAL_VERSION(pthread_cond_signal, "GLIBC_2.3.2")
TSOMON_REAL_VERSION(pthread_cond_broadcast, "GLIBC_2.3.2")

namespace explore = tsomon::explore;
using namespace tsomon::probe;

namespace {

void note_notification(const pthread_cond_t* condition, uint64_t pc) {
  if (local.thread != nullptr) {
    put_point_now(RecordType::kNotify, reinterpret_cast<uint64_t>(condition), pc);
  }
}

}  // namespace

// Where executions run in place it ends one.
TSOMON_HOOK __attribute__((noreturn)) void __assert_fail(const char* assertion, const char* file,
                                                         unsigned line,
                                                         const char* function) noexcept {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::make_stores();
  }
  if (TSOMON_UNLIKELY(explore::active) && explore::in_place::is_on()) {
    // The C library's words. It would map memory for them.
    char text[4096];
    const int size = std::snprintf(
        text, sizeof text, "%s%s%s:%u: %s%sAssertion `%s' failed.\n", program_invocation_short_name,
        program_invocation_short_name[0] != 0 ? ": " : "", file, line,
        function != nullptr ? function : "", function != nullptr ? ": " : "", assertion);
    explore::the_channel()->wrote_errors.store(1, std::memory_order_relaxed);
    explore::kernel_call(SYS_write, STDERR_FILENO, text,
                         size < static_cast<int>(sizeof text) ? size : sizeof text - 1);
    explore::end_by_abort();
  }
  real___assert_fail(assertion, file, line, function);
  __builtin_unreachable();
}

TSOMON_HOOK int sched_yield() noexcept { return explore::active ? 0 : real_sched_yield(); }

TSOMON_HOOK int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (TSOMON_LIKELY(!explore::active) || clock < 0 || clock > CLOCK_TAI) {
    return real_clock_gettime(clock, time);
  }
  const int64_t now = explore::virtual_time();
  time->tv_sec = now / 1'000'000'000;
  time->tv_nsec = now % 1'000'000'000;
  return 0;
}

TSOMON_HOOK __attribute__((noreturn)) void pthread_exit(void* value) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::set_thread_result(value);
  }
  real_pthread_exit(value);
  __builtin_unreachable();
}
TSOMON_HOOK int pthread_cancel(pthread_t handle) {
  if (TSOMON_UNLIKELY(explore::active)) {
    explore::refuse("pthread_cancel");
  }
  return real_pthread_cancel(handle);
}
// Other processes are not controlled.
#define TSOMON_REFUSED(RESULT, NAME, PARAMETERS, ARGUMENTS) \
  TSOMON_REAL(NAME)                                         \
  TSOMON_HOOK RESULT NAME PARAMETERS {                      \
    if (TSOMON_UNLIKELY(explore::active)) {                 \
      explore::refuse(#NAME);                               \
    }                                                       \
    return real_##NAME ARGUMENTS;                           \
  }
TSOMON_REFUSED(pid_t, fork, () noexcept, ())
TSOMON_REFUSED(int, system, (const char* command), (command))
TSOMON_REFUSED(FILE*, popen, (const char* command, const char* mode), (command, mode))
TSOMON_REFUSED(int, posix_spawn,
               (pid_t * process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment),
               (process, path, actions, attributes, arguments, environment))
TSOMON_REFUSED(int, posix_spawnp,
               (pid_t * process, const char* file, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment),
               (process, file, actions, attributes, arguments, environment))

TSOMON_HOOK int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::object(explore::Op::kConditionSignal, condition, TSOMON_PC());
  }
  note_notification(condition, TSOMON_PC());
  return real_pthread_cond_signal(condition);
}
TSOMON_HOOK int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (TSOMON_UNLIKELY(explore::active)) {
    return explore::object(explore::Op::kConditionBroadcast, condition, TSOMON_PC());
  }
  note_notification(condition, TSOMON_PC());
  return real_pthread_cond_broadcast(condition);
}

// std::atomic::wait and what is like it: a wait that ends at once, as it may, is a loop that looks
// again; a wake-up wakes nobody then.
TSOMON_HOOK long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) {
    argument = va_arg(list, long);
  }
  va_end(list);
  tsomon::probe::calls_kernel(number, arguments[0]);
  if (TSOMON_UNLIKELY(explore::active) && number == SYS_futex &&
      explore::controls_futex(arguments[0])) {
    const long operation = arguments[1] & FUTEX_CMD_MASK;
    if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) {
      errno = EAGAIN;
      return -1;
    }
    if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET) {
      return 0;
    }
    explore::refuse("syscall(SYS_futex)");
  }
  if (number == SYS_exit) {
    note_exit(static_cast<int>(arguments[0]));
  }
  long result = 0;
  register long r10 asm("r10") = arguments[3];
  register long r8 asm("r8") = arguments[4];
  register long r9 asm("r9") = arguments[5];
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10),
                 "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}
