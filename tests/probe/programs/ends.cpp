// The ways in which a process ends or leaves: ends WAY
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tsomon.h"

std::atomic<uint64_t> marker{0};
std::atomic<int> handled{0};
int* volatile nowhere = nullptr;
sigjmp_buf back;

struct AtThreadEnd {
  ~AtThreadEnd() { marker.fetch_add(100); }
};
thread_local AtThreadEnd at_thread_end;

void on_alarm(int) { handled.fetch_add(1); }
void jump(int) { siglongjmp(back, 1); }

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "return";
  const auto is = [way](const char* name) { return std::strcmp(way, name) == 0; };
  {
    TSOMON_UNIT("before");
    marker.fetch_add(1);
  }
  std::thread other([] {
    (void)&at_thread_end;
    marker.fetch_add(10);
  });
  other.join();
  if (is("segv")) {
    *nowhere = 1;
  } else if (is("abort")) {
    std::abort();
  } else if (is("abort_handled")) {
    std::signal(SIGABRT, on_alarm);  // returns
    std::abort();
  } else if (is("daemon")) {
    if (daemon(1, 0) != 0) {
      return 1;
    }
    marker.fetch_add(1000);  // of the child
  } else if (is("_exit")) {
    _exit(7);
  } else if (is("environment")) {
    int ours = 0;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      ours += std::strncmp(*entry, "TSOMON_", 7) == 0 ? 1 : 0;
    }
    return ours;
  } else if (is("exec_itself_twice")) {
    execl("/proc/self/exe", argv[0], "exec_itself", nullptr);
  } else if (is("exec_itself")) {
    execl("/proc/self/exe", argv[0], "return", nullptr);
  } else if (is("raw_exit")) {
    syscall(SYS_exit, 5);  // of the last thread
  } else if (is("raw_exits")) {
    // In pieces: the last thread leaves when the first has.
    std::thread([] {
      usleep(100'000);
      syscall(SYS_exit, 6);
    }).detach();
    syscall(SYS_exit, 5);
  } else if (is("exit_in_thread")) {
    std::thread([] { std::exit(8); }).join();
  } else if (is("exec")) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
  } else if (is("terminate")) {
    raise(SIGTERM);
  } else if (is("fork")) {
    const pid_t child = fork();
    if (child == 0) {
      std::thread([] { marker.fetch_add(1000); }).join();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    marker.fetch_add(5);
  } else if (is("_Fork")) {
    const pid_t child = _Fork();
    if (child == 0) {
      for (int i = 0; i < 100000; ++i) {  // more than a chunk: nobody would take it
        marker.fetch_add(1);
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    marker.fetch_add(5);
  } else if (is("vfork")) {
    const pid_t child = vfork();
    if (child == 0) {
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    marker.fetch_add(5);
  } else if (is("vfork_exec")) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", static_cast<char*>(nullptr));
      _exit(1);
    }
    waitpid(child, nullptr, 0);
    marker.fetch_add(5);
  } else if (is("spawn")) {
    pid_t child = 0;
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ);
    waitpid(child, nullptr, 0);
    marker.fetch_add(5);
  } else if (is("exec_fails")) {
    execl("/nonexistent", "nonexistent", static_cast<char*>(nullptr));
    marker.fetch_add(5);  // no longer recorded
  } else if (is("quick_exit")) {
    std::quick_exit(9);
  } else if (is("main_exits")) {
    const pthread_t first = pthread_self();
    std::thread([first] {
      pthread_join(first, nullptr);
      marker.fetch_add(5);
    }).detach();
    pthread_exit(nullptr);
  } else if (is("signals")) {
    std::signal(SIGALRM, on_alarm);
    for (int i = 0; i < 200; ++i) {
      marker.fetch_add(1);
      raise(SIGALRM);
      marker.fetch_add(1);
    }
  } else if (is("longjmp")) {
    std::signal(SIGSEGV, jump);
    if (sigsetjmp(back, 1) == 0) {
      *nowhere = 1;
    }
    marker.fetch_add(3);
  } else if (is("longjmps") || is("longjmps_alternate")) {
    static char stack[65536];
    const bool alternate = is("longjmps_alternate");
    stack_t old{};
    stack_t area{};
    area.ss_sp = stack;
    area.ss_size = sizeof stack;
    if (alternate) {
      sigaltstack(&area, &old);
    }
    struct sigaction action {};
    action.sa_handler = jump;
    action.sa_flags = alternate ? SA_ONSTACK : 0;
    sigaction(SIGUSR1, &action, nullptr);
    static volatile int left = 2000;  // more than there are chunks
    while (left > 0) {
      if (sigsetjmp(back, 1) == 0) {
        marker.fetch_add(1);
        left = left - 1;
        raise(SIGUSR1);
      }
    }
    if (alternate) {
      sigaltstack(&old, nullptr);
    }
  } else if (is("nested")) {
    // Handlers within one another, deeper than is recorded.
    static std::atomic<int> depth{0};
    std::signal(SIGUSR1, [](int) {
      if (depth.fetch_add(1) < 100) {
        raise(SIGUSR1);
      }
    });
    struct sigaction action {};
    sigaction(SIGUSR1, nullptr, &action);
    action.sa_flags |= SA_NODEFER;
    sigaction(SIGUSR1, &action, nullptr);
    raise(SIGUSR1);
    marker.fetch_add(3);
  }
  return 0;
}
