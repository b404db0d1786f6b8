// The life of the process: start, exit, crash.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/probe/handover.h"
#include "monitor/probe/real.h"

TSOMON_REAL(_exit)
TSOMON_REAL(sigaction)

namespace tsomon::probe {

void* next_definition(const char* name, const char* version) {
  void* const found =
      version != nullptr ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    complain("the C library has no function '%s'", name);
    abort();
  }
  return found;
}

namespace {

pid_t recorded_pid = 0;

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

void at_exit() { finish(); }

}  // namespace

void use_alternate_stack() {
  if (!recording) {
    return;
  }
  constexpr size_t kSize = 65536;
  stack_t old{};
  if (sigaltstack(nullptr, &old) == 0 && (old.ss_flags & SS_DISABLE) != 0) {
    stack_t stack{};
    stack.ss_sp = take_memory(kSize);
    stack.ss_size = kSize;
    if (stack.ss_sp != nullptr) {
      sigaltstack(&stack, nullptr);
    }
  }
}

void start() {
  static bool started = false;
  if (TSOMON_LIKELY(started)) {
    return;
  }
  started = true;
  const char* const text = std::getenv("TSOMON_OPTIONS");
  if (text == nullptr) {
    return;
  }
  char error[512];
  if (!parse_options(text, &options, error, sizeof error)) {
    complain("TSOMON_OPTIONS: %s", error);
    syscall(SYS_exit_group, 2);
  }
  if (options.output == nullptr) {
    return;
  }
  prepare_threads();
  recorded_pid = getpid();
  if (!start_handover(options.output)) {
    syscall(SYS_exit_group, 2);
  }
  recording = true;
  use_alternate_stack();
  catch_fatal_signals();
  std::atexit(at_exit);
}

}  // namespace tsomon::probe

using namespace tsomon::probe;

TSOMON_HOOK void __tsan_init() { start(); }

// Before the constructors of the program, whoever links the runtime.
__attribute__((constructor(101))) static void start_before_main() { start(); }

TSOMON_HOOK __attribute__((noreturn)) void _exit(int status) {
  if (getpid() == recorded_pid) {
    finish();
  }
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}
TSOMON_HOOK __attribute__((noreturn)) void _Exit(int status) { _exit(status); }
