// Kinds of programs with children, stacks of their own, and limits (kinds.cpp).
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kinds.h"

using namespace program;

namespace {

// Children, and who looks after them

int vforks() {
  both();
  volatile int mark = 0;
  const pid_t child = vfork();
  if (child == 0) {
    mark = 1;
    execl("/bin/echo", "echo", "from the child", nullptr);
    _exit(127);
  }
  say(std::to_string(status_of(child)) + " " + std::to_string(mark));
  return 0;
}
int debugs_child() {
  both();
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    both(50);
    _exit(5);
  }
  int stops = 0;
  int status = status_of(child);
  for (; WIFSTOPPED(status); status = status_of(child)) {
    ++stops;
    ptrace(PTRACE_CONT, child, nullptr, WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status));
  }
  say(std::to_string(stops) + " stops, " + std::to_string(WEXITSTATUS(status)));
  return 0;
}
void reap(int) {
  const int error = errno;
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
    signals = signals + 1;
  }
  errno = error;
}
int reaps_any() {
  on(SIGCHLD, reap, SA_RESTART);
  both();
  for (int i = 0; i < 5; ++i) {
    if (fork() == 0) {
      _exit(0);
    }
  }
  while (signals < 5) {
    usleep(1'000);
  }
  say(waitpid(-1, nullptr, 0) == -1 && errno == ECHILD ? "none left" : "more");
  return 0;
}
int adopts_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  both();
  if (fork() == 0) {
    if (fork() == 0) {
      usleep(20'000);
    }
    _exit(0);
  }
  int children = 0;
  while (waitpid(-1, nullptr, 0) > 0) {
    ++children;
  }
  say(std::to_string(children));
  return 0;
}
int stops_child() {
  both();
  const pid_t child = fork();
  if (child == 0) {
    both();
    raise(SIGSTOP);
    both();
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  const bool stopped = WIFSTOPPED(status);
  kill(child, SIGCONT);
  waitpid(child, &status, WCONTINUED);
  say(std::to_string(stopped) + std::to_string(WIFCONTINUED(status)) +
      std::to_string(WEXITSTATUS(status_of(child))));
  return 0;
}
int fork_handlers() {
  static std::mutex own;
  pthread_atfork([] { own.lock(); }, [] { own.unlock(); }, [] { own.unlock(); });
  std::thread other([] {
    for (int i = 0; i < 200; ++i) {
      const std::lock_guard lock(own);
      ++balance;
    }
  });
  for (int i = 0; i < 10; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      work(5);
      _exit(0);
    }
    must(status_of(child) == 0, "child");
  }
  other.join();
  say(std::to_string(balance));
  return 0;
}
// What needs rights that are missing fails as it does alone.
int other_processes_namespace() {
  both();
  if (unshare(CLONE_NEWPID) != 0) {
    say(std::strerror(errno));
    return 0;
  }
  const pid_t child = fork();
  if (child == 0) {
    both();
    say(std::to_string(getpid()));
    _exit(3);
  }
  say(std::to_string(WEXITSTATUS(status_of(child))));
  return 0;
}
int other_files_namespace() {
  both();
  say(unshare(CLONE_NEWNS) == 0 ? "unshared" : std::strerror(errno));
  work(100);
  say(unshare(CLONE_FS | CLONE_FILES) == 0 ? "unshared" : std::strerror(errno));
  work(100);
  return 0;
}
// A user's namespace only a process with one thread may have.
int own_user_namespace() {
  say(unshare(CLONE_NEWUSER) == 0 ? "unshared" : std::strerror(errno));
  both();
  say(unshare(CLONE_NEWUSER) == 0 ? "unshared" : std::strerror(errno));
  both(2000);
  std::thread other([] { say(unshare(CLONE_NEWUSER) == 0 ? "unshared" : std::strerror(errno)); });
  other.join();
  return 0;
}
int other_root() {
  both();
  mkdir("root", 0700);
  say(chroot("root") == 0 && chdir("/") == 0 ? "in there" : std::strerror(errno));
  both(2000);
  return 0;
}
int raw_clone() {
  static char stack[262144];
  static std::atomic<int> done{0};
  both();
  const int child = clone(
      [](void*) {
        done = 1;
        return 0;
      },
      stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, nullptr);
  must(child > 0, "clone");
  status_of(child);
  say(std::to_string(done));
  return 0;
}

// Stacks and contexts

void* on_little(void* given) {
  work(20);
  return given;
}
int little_stacks() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  must(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0, "stack size");
  pthread_t thread{};
  for (int i = 0; i < 20; ++i) {
    must(pthread_create(&thread, &attributes, on_little, nullptr) == 0, "pthread_create");
    pthread_join(thread, nullptr);
  }
  alignas(4096) static char stack[65536];
  pthread_attr_setstack(&attributes, stack, sizeof stack);
  must(pthread_create(&thread, &attributes, on_little, stack) == 0, "pthread_create");
  void* result = nullptr;
  pthread_join(thread, &result);
  say(result == stack ? "its own" : "another one");
  return 0;
}
ucontext_t outside;
ucontext_t inside;
int own_fibers() {
  static char stack[262144];
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = sizeof stack;
  inside.uc_link = &outside;
  makecontext(
      &inside,
      [] {
        for (int i = 0; i < 5; ++i) {
          work(10);
          swapcontext(&inside, &outside);
        }
      },
      0);
  std::thread other(work, 100);
  for (int i = 0; i < 5; ++i) {
    swapcontext(&outside, &inside);
    work(10);
  }
  other.join();
  say(std::to_string(balance));
  return 0;
}

// Limits

int profiled() {
  on(SIGPROF, count, SA_RESTART);
  const itimerval every{{0, 1'000}, {0, 1'000}};
  setitimer(ITIMER_PROF, &every, nullptr);
  while (signals < 20) {
    both(100);
  }
  say("profiled");
  return 0;
}
int processor_limit() {
  on(SIGXCPU, count);
  both();
  const rlimit second{1, 3};
  must(setrlimit(RLIMIT_CPU, &second) == 0, "setrlimit");
  while (signals == 0) {
    work(1'000);
  }
  say("a second is over");
  return 0;
}

// Between threads

int system_semaphores() {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  must(set >= 0, "semget");
  std::thread other([&] {
    work(100);
    sembuf up{0, 1, 0};
    semop(set, &up, 1);
  });
  sembuf down{0, -1, 0};
  must(semop(set, &down, 1) == 0, "semop");
  work(100);
  other.join();
  semctl(set, 0, IPC_RMID);
  say(std::to_string(balance));
  return 0;
}

}  // namespace

namespace program {

const Kind more_kinds[] = {KIND(vforks),
                           KIND(debugs_child),
                           KIND(reaps_any),
                           KIND(adopts_orphans),
                           KIND(stops_child),
                           KIND(fork_handlers),
                           KIND(other_processes_namespace),
                           KIND(other_files_namespace),
                           KIND(own_user_namespace),
                           KIND(other_root),
                           KIND(raw_clone),
                           KIND(little_stacks),
                           KIND(own_fibers),
                           KIND(profiled),
                           KIND(processor_limit),
                           KIND(system_semaphores)};
const Kind* const end_of_more_kinds = std::end(more_kinds);

}  // namespace program
