// The life of the process: start, exit, fork, exec, crash; the program's signal handlers.
//
// exit, _exit   what lies in the buffers is written, then the trailer. Threads that still run are
//               cut at that moment. So do abort, daemon (of the parent) and the return from main.
//               Missed: exit_group by syscall(2); the last second but for what was handed over.
// Crash         a signal that ends the process by default is caught: the writer thread is asked to
//               finish (the stopped thread does it itself when there is no answer within ten
//               seconds; not where a reader that is stopped keeps the writer waiting), then the
//               signal is sent again with its default action. The program's own handlers take
//               precedence. SIGKILL: what was handed over is in the file, and what is older than a
//               second.
// fork          follow_fork=0: the child is not recorded. 1: the child records itself to FILE.PID
//               as a process of its own that starts with one thread. A child of vfork shares the
//               memory and is recorded as part of the calling thread. A child of _Fork is not
//               recorded.
// exec          finishes the recording, also when exec then fails. The new program, and any
//               instrumented program that the process starts, records to FILE.PID; when it is
//               watched live it runs unrecorded.
// Slices        a process that is watched for a while (control=, slices.h) is asked for anew in a child of fork and in
//               an executed program, each by its own number. Nothing catches its crashes: of a slice that one
//               ends there is what was written.
// Handlers      run inside enter_handler/leave_handler (runtime.h). A handler that leaves with
//               siglongjmp is seen as lasting on until the next signal comes: its records stay in
//               order. Of more than 16 handlers within one another the innermost are not recorded,
//               and their events counted as lost. Missed: handlers
//               that are installed by other functions than sigaction and the kinds of signal().
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/explore/runtime/runtime.h"
#include "monitor/probe/chunk_writer.h"
#include "monitor/probe/control.h"
#include "monitor/probe/environment.h"
#include "monitor/probe/function_units.h"
#include "monitor/probe/modules.h"
#include "monitor/probe/named_locks.h"
#include "monitor/probe/not_instrumented.h"
#include "monitor/probe/process_clock.h"
#include "monitor/probe/real.h"
#include "monitor/probe/signals.h"
#include "monitor/probe/slices.h"
#include "monitor/probe/twins.h"
#include "monitor/probe/watched_memory.h"

TSOMON_REAL(_exit)
TSOMON_REAL(abort)
TSOMON_REAL(_Fork)
TSOMON_REAL(sigaction)
TSOMON_REAL(execve)
TSOMON_REAL(execv)
TSOMON_REAL(execvp)
TSOMON_REAL(execvpe)
TSOMON_REAL(fexecve)
TSOMON_REAL(execveat)

// With `tsomon-c++ --control` the linker defines it.
extern "C" __attribute__((weak, visibility("default"))) const char tsomon_control_by_build;

namespace tsomon::probe {

void* next_definition(const char* name, const char* version) {
  void* const found =
      version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    warn("the C library has no function '%s'", name);
    abort();
  }
  return found;
}

namespace {

pid_t recorded_pid = 0;
__thread void* alternate_stack;  // of the runtime; nullptr: none

// Set in the environment of a recorded process: FILE is taken, since this time in nanoseconds.
constexpr const char* kTakenVariable = "TSOMON_OUTPUT_TAKEN";
uint64_t taken_since = 0;
char path_of_process[Options::kMaxText + 64];

uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// FILE, or FILE.PID for another process or program than the first; FILE.PID.2 and so on for further
// programs that the same process executes.
const char* output_path(bool first) {
  if (first) {
    return options.output;
  }
  constexpr int kMostPrograms = 100'000;
  std::snprintf(path_of_process, sizeof path_of_process, "%s.%d", options.output, getpid());
  for (int program = 2; program < kMostPrograms; ++program) {
    struct stat status {};
    // What is older is of another process that had the number.
    if (kernel::stat(path_of_process, &status) != 0 || nanoseconds(status.st_mtim) < taken_since) {
      break;
    }
    std::snprintf(path_of_process, sizeof path_of_process, "%s.%d.%d", options.output, getpid(),
                  program);
  }
  return path_of_process;
}

using Handler = void (*)(int, siginfo_t*, void*);
// What the program installed; the kernel has on_signal. An entry is written before the kernel's.
std::atomic<Handler> handlers[NSIG];

void on_signal(int number, siginfo_t* info, void* context) {
  if (ended_early) {
    return handlers[number].load(std::memory_order_acquire)(number, info, context);
  }
  const int saved_errno = errno;
  const HandlerPlace outer = controlled ? enter_signal(context) : HandlerPlace();
  HandlerFrame frame{};
  enter_handler(&frame, context);
  receives_signal(number, 0);
  errno = saved_errno;
  handlers[number].load(std::memory_order_acquire)(number, info, context);
  leave_handler(&frame);
  if (controlled) {
    leave_signal(outer);
  }
}

// Signals whose default is to end the process.
constexpr int kFatal[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE, SIGABRT,
                          SIGTRAP, SIGTERM, SIGINT, SIGHUP, SIGQUIT};

void on_fatal(int number, siginfo_t*, void*) {
  finish();
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  real_sigaction(number, &action, nullptr);
  // A fault repeats when the handler returns; an asynchronous signal has to be sent again.
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

void catch_fatal_signals() {
  for (const int number : kFatal) {
    struct sigaction old {};
    if (real_sigaction(number, nullptr, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
        old.sa_handler == SIG_DFL) {
      struct sigaction action {};
      action.sa_sigaction = on_fatal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigfillset(&action.sa_mask);
      real_sigaction(number, &action, nullptr);
    }
  }
}

void at_exit() {
  if (recording && getpid() == recorded_pid) {
    finish();
  }
  if (controlled && getpid() == recorded_pid) {
    remove_control();
  }
}

bool is_fatal(int number) {
  for (const int fatal : kFatal) {
    if (fatal == number) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool end_process(uint64_t signals) {
  for (const int number : kFatal) {
    struct sigaction now {};
    if ((signals >> (number - 1) & 1) != 0 && real_sigaction(number, nullptr, &now) == 0 &&
        now.sa_sigaction == on_fatal) {
      return true;
    }
  }
  return false;
}

void give_up_recording() {
  recording = false;
  ended_early = true;
  local = Local{};
  local.off = true;
}

namespace {

// Before the program restricts its system calls, to those that it makes itself: none but those may
// come from here any more.
void end_before_filter() {
  if (controlled && !local.off && getpid() == recorded_pid) {
    end_control();
    controlled = false;
    give_up_recording();
    return;
  }
  if (!recording || local.off || getpid() != recorded_pid) {
    return;
  }
  note_end_of_recording("all that came after the program restricted its system calls (seccomp)");
  finish();
  end_chunk_writer();
  for (const int number : kFatal) {
    struct sigaction now {};
    if (real_sigaction(number, nullptr, &now) == 0 && now.sa_sigaction == on_fatal) {
      now = {};
      now.sa_handler = SIG_DFL;
      real_sigaction(number, &now, nullptr);
    }
  }
  warn("the program restricts its system calls (seccomp): recording ends here");
  give_up_recording();
}

void in_child() {
  if (ended_early) {
    return;
  }
  shares_with_child();
  const bool follow = recording && options.follow_fork && options.live == 0;
  const bool was_active = local.thread != nullptr || local.off;
  recording = false;
  recorded_pid = 0;
  leave_chunk_writer();
  reset_after_fork();
  reset_modules_after_fork();
  count_threads_after_fork();
  if (controlled) {
    forget_control();
    unwatch_twins_after_fork();
    recorded_pid = getpid();
    controlled = start_control();
    return;
  }
  if (follow) {
    recorded_pid = getpid();
    prepare_clock_after_fork();
    recording = start_chunk_writer(output_path(false));
    if (recording && was_active) {
      activate(0);
    }
  }
}

void in_parent() {
  unlock_after_fork();
  shares_with_child();
  if (recording && !options.follow_fork) {
    count_child();
  }
}

void leave_process() {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::refuse("exec");
  }
  at_exit();
}

// What hooks look at, from the options.
void choose_hooks() {
  selective = options.only_sets || options.stores_outside;
  simple_atomics = options.stamp_max_age != 0 && options.noise == 0 && !options.only_sets;
}

// Nothing is recorded until somebody asks for it.
void start_controlled() {
  options.objects = 0;
  choose_hooks();
  // A canary does not wait for who watches it.
  options.drop_when_full = true;
  if (!find_unit_functions(false) || !find_lock_functions(false) || !declare_named_sets(false)) {
    refuse(kBadOptions);
  }
  prepare_threads();
  recorded_pid = getpid();
  controlled = true;
  if (!start_control()) {
    controlled = false;
    return;
  }
  pthread_atfork(lock_for_fork, in_parent, in_child);
  std::atexit(at_exit);
  at_quick_exit(at_exit);
}

bool controlled_by_build() {
  const volatile char* const mark = &tsomon_control_by_build;
  return mark != nullptr && getauxval(AT_SECURE) == 0;
}

}  // namespace

void use_alternate_stack() {
  if (!recording || controlled) {
    return;
  }
  stack_t old{};
  if (sigaltstack(nullptr, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0) {
    stack_t stack{};
    stack.ss_sp = take_block();
    stack.ss_size = kBlockSize;
    if (stack.ss_sp != nullptr && sigaltstack(&stack, nullptr) == 0) {
      alternate_stack = stack.ss_sp;
    } else if (stack.ss_sp != nullptr) {
      give_block(stack.ss_sp);
    }
  }
}

// The kernel refuses while a handler runs there, which a thread can end in. The program may have
// set another one.
void leave_alternate_stack() {
  stack_t now{};
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  if (alternate_stack != nullptr && !ended_early && sigaltstack(nullptr, &now) == 0 &&
      ((now.ss_flags & SS_DISABLE) != 0 || now.ss_sp != alternate_stack ||
       sigaltstack(&none, nullptr) == 0)) {
    give_block(alternate_stack);
  }
  alternate_stack = nullptr;
}

void start() {
  static bool started = false;
  if (TSOMON_LIKELY(started)) {
    return;
  }
  started = true;
  close_environment();
  const char* const text = tsomon::explore::active ? nullptr : variable("TSOMON_OPTIONS");
  options.control_by_name = !tsomon::explore::active && controlled_by_build();
  if (text == nullptr && !options.control_by_name) {
    return;
  }
  prepare_messages();
  char error[512];
  if (text != nullptr && !parse_options(text, &options, error, sizeof error)) {
    warn("TSOMON_OPTIONS: %s", error);
    refuse(kBadOptions);
  }
  if (options.output == nullptr) {
    if (options.control_by_name || options.control != nullptr) {
      start_controlled();
    }
    return;
  }
  const char* const taken = variable(kTakenVariable);
  const bool first = taken == nullptr;
  if (first) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);  // as files have it
    taken_since = nanoseconds(now);
  } else {
    taken_since = std::strtoull(taken, nullptr, 10);
  }
  if (!first && options.live != 0) {
    return;  // who reads expects one process
  }
  choose_hooks();
  quick_units = simple_atomics;
  prepare_clock();
  // The patterns are meant for the first program: what it starts may have nothing of the kind.
  if (!find_unit_functions(first) || !find_lock_functions(first) || !declare_named_sets(first)) {
    refuse(kBadOptions);
  }
  prepare_threads();
  recorded_pid = getpid();
  if (!start_chunk_writer(output_path(first))) {
    refuse(kBadEnvironment);
  }
  if (first) {
    char since[24];
    std::snprintf(since, sizeof since, "%llu", static_cast<unsigned long long>(taken_since));
    setenv(kTakenVariable, since, 1);
  }
  if (!watch_twins(true)) {
    refuse(kBadEnvironment);
  }
  recording = true;
  pthread_atfork(lock_for_fork, in_parent, in_child);
  use_alternate_stack();
  catch_fatal_signals();
  std::atexit(at_exit);
  at_quick_exit(at_exit);  // quick_exit does not call _exit through the dynamic linker
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

void tsomon::probe::calls_kernel(long number, long first) {
  if (number == SYS_seccomp ? first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER
                            : number == SYS_prctl && first == PR_SET_SECCOMP) {
    end_before_filter();
  }
}

TSOMON_HOOK int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  long arguments[4];
  for (long& argument : arguments) {
    argument = va_arg(list, long);
  }
  va_end(list);
  calls_kernel(SYS_prctl, option);
  return static_cast<int>(tsomon::kernel::call(SYS_prctl, option, arguments[0], arguments[1],
                                               arguments[2], arguments[3]));
}

TSOMON_HOOK void __tsan_init() { start(); }

// Before the constructors of the program, whoever links the runtime.
__attribute__((constructor(101))) static void start_before_main() {
  close_environment();
  tsomon::explore::serve_if_asked();
  start();
}

TSOMON_HOOK __attribute__((noreturn)) void _exit(int status) {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::make_stores();
    tsomon::explore::finish(
        status == 0 ? tsomon::explore::End::kFinished : tsomon::explore::End::kExited, status);
  }
  leave_process();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
TSOMON_HOOK __attribute__((noreturn)) void _Exit(int status) { _exit(status); }

TSOMON_HOOK int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  if (!(recording || controlled) || number <= 0 || number >= NSIG) {
    return real_sigaction(number, action, old);
  }
  const Handler before = handlers[number].load(std::memory_order_acquire);
  struct sigaction ours {};
  if (action != nullptr) {
    ours = *action;
    const bool plain = (action->sa_flags & SA_SIGINFO) == 0;
    if (plain && action->sa_handler == SIG_DFL && is_fatal(number) && !controlled) {
      ours.sa_sigaction = on_fatal;
      ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigfillset(&ours.sa_mask);
    } else if (!plain || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)) {
      // With SA_SIGINFO or not: x86-64 passes the same arguments.
      handlers[number].store(action->sa_sigaction, std::memory_order_release);
      ours.sa_sigaction = on_signal;
    }
  }
  if (ours.sa_sigaction == on_signal) {
    sends_signal(number, TSOMON_PC());
  }
  struct sigaction was {};
  const int result = real_sigaction(number, action != nullptr ? &ours : nullptr, &was);
  if (result == 0 && old != nullptr) {
    if (was.sa_sigaction == on_signal) {
      was.sa_sigaction = before;
    } else if (was.sa_sigaction == on_fatal) {
      was = {};
      was.sa_handler = SIG_DFL;
    }
    *old = was;
  }
  return result;
}

static sighandler_t install(int number, sighandler_t handler, int flags) {
  struct sigaction action {};
  struct sigaction old {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
TSOMON_HOOK sighandler_t signal(int number, sighandler_t handler) {
  return install(number, handler, SA_RESTART);
}
TSOMON_HOOK sighandler_t ssignal(int number, sighandler_t handler) {
  return install(number, handler, SA_RESTART);
}
TSOMON_HOOK sighandler_t bsd_signal(int number, sighandler_t handler) {
  return install(number, handler, SA_RESTART);
}
TSOMON_HOOK sighandler_t sysv_signal(int number, sighandler_t handler) {
  return install(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}
// What signal() is in programs of strict C.
TSOMON_HOOK sighandler_t __sysv_signal(int number, sighandler_t handler) {
  return install(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER));
}

// The handlers of pthread_atfork do not run, and the child may do only what a signal handler may.
TSOMON_HOOK pid_t _Fork() {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::refuse("fork");
  }
  const pid_t child = real__Fork();
  if (child == 0) {
    recording = false;
    recorded_pid = 0;
    reset_modules_after_fork();
    local = Local{};
    local.off = true;
  } else if (child > 0 && recording) {
    count_child();
  }
  return child;
}

// The C library's ends the parent by a call of _exit that is seen nowhere. This one does the same.
TSOMON_HOOK int daemon(int keep_folder, int keep_files) noexcept {
  const pid_t child = fork();
  if (child != 0) {
    if (child > 0) {
      _exit(0);
    }
    return -1;
  }
  if (setsid() < 0) {
    return -1;
  }
  if (keep_folder == 0 && chdir("/") != 0) {
    return -1;
  }
  if (keep_files == 0) {
    const int nothing = tsomon::kernel::open("/dev/null", O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (nothing < 0 || tsomon::kernel::fstat(nothing, &status) != 0) {
      return -1;
    }
    if (!S_ISCHR(status.st_mode)) {
      tsomon::kernel::close(nothing);
      errno = ENODEV;
      return -1;
    }
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      tsomon::kernel::dup2(nothing, number);
    }
    if (nothing > STDERR_FILENO) {
      tsomon::kernel::close(nothing);
    } else {
      fcntl(nothing, F_SETFD, 0);
    }
  }
  return 0;
}

// The program's handler runs first, and may go elsewhere; if it returns, the process ends.
TSOMON_HOOK __attribute__((noreturn)) void abort() noexcept {
  if (TSOMON_UNLIKELY(tsomon::explore::active)) {
    tsomon::explore::end_by_abort();
  }
  if (recording && getpid() == recorded_pid) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGABRT);
    real_pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    raise(SIGABRT);
    finish();
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    real_sigaction(SIGABRT, &action, nullptr);
  }
  next_abort()();
  __builtin_unreachable();
}

TSOMON_HOOK int execve(const char* path, char* const argv[], char* const envp[]) {
  leave_process();
  return real_execve(path, argv, envp);
}
TSOMON_HOOK int execv(const char* path, char* const argv[]) {
  leave_process();
  return real_execv(path, argv);
}
TSOMON_HOOK int execvp(const char* file, char* const argv[]) {
  leave_process();
  return real_execvp(file, argv);
}
TSOMON_HOOK int execvpe(const char* file, char* const argv[], char* const envp[]) {
  leave_process();
  return real_execvpe(file, argv, envp);
}
TSOMON_HOOK int execveat(int fd, const char* path, char* const argv[], char* const envp[],
                         int flags) noexcept {
  leave_process();
  return real_execveat(fd, path, argv, envp, flags);
}
TSOMON_HOOK int fexecve(int fd, char* const argv[], char* const envp[]) {
  leave_process();
  return real_fexecve(fd, argv, envp);
}

// execl, execlp and execle: the arguments up to the null pointer, as an array.
#define TSOMON_EXECL(NAME, CALL, ENVIRONMENT)                      \
  TSOMON_HOOK int NAME(const char* path, const char* first, ...) { \
    char* arguments[1024] = {const_cast<char*>(first)};            \
    va_list rest;                                                  \
    va_start(rest, first);                                         \
    int count = 1;                                                 \
    while (arguments[count - 1] != nullptr && count < 1023) {      \
      arguments[count++] = va_arg(rest, char*);                    \
    }                                                              \
    char* const* environment = ENVIRONMENT;                        \
    va_end(rest);                                                  \
    if (arguments[count - 1] != nullptr) {                         \
      errno = E2BIG;                                               \
      return -1;                                                   \
    }                                                              \
    leave_process();                                               \
    return CALL(path, arguments, environment);                     \
  }
TSOMON_EXECL(execl, real_execve, environ)
TSOMON_EXECL(execlp, real_execvpe, environ)
TSOMON_EXECL(execle, real_execve, va_arg(rest, char* const*))
