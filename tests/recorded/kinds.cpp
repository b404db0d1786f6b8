// Kinds of programs, for check_kinds: kinds NAME does something that a recorder could spoil, and says what came of it.
// While the file that GATE names exists the program waits before it begins.
#include "kinds.h"

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace program;

namespace {

std::atomic<int> flag{0};

void put(const char* name, const std::string& text) { std::ofstream(name) << text; }

sigjmp_buf back;
void jump(int) { siglongjmp(back, 1); }

struct Said {
  const char* name;
  ~Said() { say(name); }
};

// Ends

int returns() { return both() == 400 ? 7 : 1; }
int exits_in_thread() {
  std::thread([] {
    both();
    std::exit(5);
  }).join();
  return 1;
}
int exits_at_once() {
  both();
  _exit(6);
}
int quick_exits() {
  std::at_quick_exit([] { say("at quick exit"); });
  both();
  std::quick_exit(8);
}
int aborts() {
  both();
  std::abort();
}
int faults() {
  both();
  volatile int* volatile nowhere = nullptr;
  return *nowhere;
}
int divides() {
  volatile int zero = static_cast<int>(both() - 400);
  return 1 / zero;
}
int raises_terminate() {
  both();
  raise(SIGTERM);
  return 1;
}
int kills_itself() {
  both();
  kill(getpid(), SIGKILL);
  return 1;
}
int throws() {
  both();
  throw std::runtime_error("nobody catches this");
}
int throws_in_thread() {
  std::thread([]() -> void { throw both(); }).join();
  return 1;
}
int exit_handlers() {
  static const Said last{"static destructor"};
  std::atexit([] { say("at exit " + std::to_string(both())); });
  both();
  return 3;
}
int main_thread_ends() {
  static std::thread other([] {
    usleep(20'000);
    say(std::to_string(both()));
  });
  other.detach();
  pthread_exit(nullptr);
}
int detached() {
  std::thread([] {
    for (;;) {
      work(1);
    }
  }).detach();
  work(100);
  return 4;
}
int raw_exit_group() {
  both();
  syscall(SYS_exit_group, 9);
  return 1;
}
int last_thread_exits_raw() {
  both();
  syscall(SYS_exit, 10);
  return 1;
}
int canceled() {
  std::atomic<bool> runs{false};
  struct Cancelable {
    static void* wait(void* runs) {
      static_cast<std::atomic<bool>*>(runs)->store(true);
      for (;;) {
        sleep(1);
      }
    }
  };
  pthread_t thread{};
  must(pthread_create(&thread, nullptr, Cancelable::wait, &runs) == 0, "pthread_create");
  while (!runs) {
  }
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  say(result == PTHREAD_CANCELED ? "canceled" : "returned");
  return static_cast<int>(both() - 400);
}

// Processes

int forks() {
  both();
  const pid_t child = fork();
  if (child == 0) {
    say("child " + std::to_string(both()));
    _exit(11);
  }
  say("status " + std::to_string(WEXITSTATUS(status_of(child))));
  return 0;
}
int forks_in_thread() {
  std::thread([] {
    const pid_t child = fork();
    if (child == 0) {
      work(10);
      std::exit(12);
    }
    say("status " + std::to_string(WEXITSTATUS(status_of(child))));
  }).join();
  return static_cast<int>(both() - 400);
}
int child_killed() {
  const pid_t child = fork();
  if (child == 0) {
    pause();
  }
  both();
  kill(child, SIGTERM);
  say("signal " + std::to_string(WTERMSIG(status_of(child))));
  return 0;
}
int runs_shell() {
  both();
  return WEXITSTATUS(std::system("echo from the shell; exit 13"));
}
int reads_pipe_of_shell() {
  both();
  FILE* const pipe = popen("echo piped", "r");
  char line[64] = "";
  must(std::fgets(line, sizeof line, pipe) != nullptr, "fgets");
  say(line);
  return WEXITSTATUS(pclose(pipe));
}
int spawns() {
  both();
  pid_t child = 0;
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  must(posix_spawnp(&child, name, nullptr, nullptr, arguments, environ) == 0, "posix_spawnp");
  return status_of(child);
}
int executes() {
  both();
  execlp("echo", "echo", "executed", nullptr);
  return 1;
}
int daemon() {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      usleep(30'000);
      put("daemon", std::to_string(both()));
      put("daemon.done", "");
    }
    _exit(0);
  }
  status_of(child);
  while (access("daemon.done", F_OK) != 0) {
    usleep(1'000);
  }
  return 0;
}
int orphans_none() {
  both();
  errno = 0;
  const bool none = waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
  say(none ? "no children" : "children that nobody made");
  return 0;
}

// Signals

int handles() {
  on(SIGUSR1, count);
  for (int i = 0; i < 50; ++i) {
    raise(SIGUSR1);
    work(1);
  }
  say(std::to_string(signals));
  return static_cast<int>(both() - 450);
}
int jumps_out() {
  on(SIGUSR1, jump, SA_NODEFER);
  volatile int jumps = 0;
  for (volatile int i = 0; i < 500;) {
    i = i + 1;
    if (sigsetjmp(back, 1) == 0) {
      raise(SIGUSR1);
    } else {
      jumps = jumps + 1;
    }
  }
  say(std::to_string(jumps));
  return static_cast<int>(both() - 400);
}
int catches_fault() {
  on(SIGSEGV, jump);
  volatile int* volatile nowhere = nullptr;
  if (sigsetjmp(back, 1) == 0) {
    *nowhere = 1;
  }
  say("caught");
  return static_cast<int>(both() - 400);
}
int overflows_stack() {
  static char stack[1 << 16];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  must(sigaltstack(&other, nullptr) == 0, "sigaltstack");
  on(SIGSEGV, jump, SA_ONSTACK);
  struct Deep {
    static int go(int depth) {
      volatile char room[4096];
      room[0] = static_cast<char>(depth);
      return depth == 0 ? 0 : go(depth + 1) + room[0];
    }
  };
  both();
  if (sigsetjmp(back, 1) == 0) {
    return Deep::go(1);
  }
  say("overflow caught");
  return 0;
}
int timer() {
  on(SIGALRM, count);
  const itimerval period{{0, 2'000}, {0, 2'000}};
  setitimer(ITIMER_REAL, &period, nullptr);
  while (signals < 10) {
    work(1);
  }
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  say("ten alarms");
  return 0;
}
int sleep_interrupted() {
  on(SIGALRM, count);
  both();
  const itimerval once{{0, 0}, {0, 20'000}};
  setitimer(ITIMER_REAL, &once, nullptr);
  const timespec long_time{60, 0};
  say(nanosleep(&long_time, nullptr) < 0 && errno == EINTR ? "interrupted" : "slept");
  return 0;
}
int waits_for_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread other([] { kill(getpid(), SIGUSR2); });
  int signal = 0;
  sigwait(&set, &signal);
  other.join();
  say(signal == SIGUSR2 ? "came" : "another");
  return static_cast<int>(both() - 400);
}
int signal_descriptor() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int descriptor = signalfd(-1, &set, SFD_CLOEXEC);
  both();
  raise(SIGUSR2);
  signalfd_siginfo info{};
  must(read(descriptor, &info, sizeof info) == sizeof info, "read");
  say(std::to_string(info.ssi_signo == SIGUSR2));
  return 0;
}
int mask_kept() {
  sigset_t set;
  sigset_t now;
  sigfillset(&set);
  sigprocmask(SIG_SETMASK, &set, nullptr);
  both();
  sigprocmask(SIG_SETMASK, nullptr, &now);
  int blocked = 0;
  for (int signal = 1; signal < 32; ++signal) {
    blocked += sigismember(&now, signal);
  }
  say(std::to_string(blocked) + " blocked");
  std::thread([] {
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    say(sigismember(&mine, SIGTERM) == 1 ? "inherited" : "lost");
  }).join();
  return 0;
}
int broken_pipe() {
  both();
  int ends[2];
  must(pipe(ends) == 0, "pipe");
  close(ends[0]);
  return write(ends[1], "x", 1) < 0 ? 1 : 2;
}
int broken_pipe_ignored() {
  signal(SIGPIPE, SIG_IGN);
  both();
  int ends[2];
  must(pipe(ends) == 0, "pipe");
  close(ends[0]);
  say(write(ends[1], "x", 1) < 0 && errno == EPIPE ? "EPIPE" : "written");
  return 0;
}

// Files and descriptors

int reads_input() {
  char text[64] = "";
  const ssize_t size = read(STDIN_FILENO, text, sizeof text - 1);
  say("read " + std::to_string(size) + " " + text);
  return static_cast<int>(both() - 400);
}
int writes_files() {
  both();
  put("first", "one\n");
  must(rename("first", "second") == 0, "rename");
  must(mkdir("folder", 0700) == 0, "mkdir");
  put("folder/third", std::string(10'000, 'x'));
  must(symlink("second", "link") == 0, "symlink");
  return 0;
}
int changes_folder() {
  must(mkdir("inside", 0755) == 0 && chdir("inside") == 0, "chdir");
  umask(077);
  put("private", "text");
  both();
  struct stat info {};
  must(stat("private", &info) == 0, "stat");
  say(std::to_string(info.st_mode & 0777));
  return 0;
}
int next_descriptor() {
  both();
  const int descriptor = open("/dev/null", O_RDONLY);
  say("descriptor " + std::to_string(descriptor));
  return 0;
}
int closes_all() {
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    close(descriptor);
  }
  const int first = open("/dev/null", O_RDONLY);
  say("descriptor " + std::to_string(first));
  return static_cast<int>(both() - 400);
}
int few_descriptors() {
  const rlimit few{16, 16};
  must(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  both();
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) {
    ++opened;
  }
  say(std::to_string(opened) + " opened");
  return 0;
}
int output_moved() {
  const int file = open("output", O_WRONLY | O_CREAT, 0644);
  must(dup2(file, STDOUT_FILENO) == STDOUT_FILENO, "dup2");
  both();
  std::puts("in the file");
  return 0;
}
int output_closed() {
  close(STDOUT_FILENO);
  close(STDERR_FILENO);
  return static_cast<int>(both() - 395);
}
int buffered_output() {
  std::printf("printed, not flushed");
  std::fprintf(stderr, "an error\n");
  both();
  return 0;
}
int maps_file() {
  const int file = open("mapped", O_RDWR | O_CREAT, 0644);
  must(ftruncate(file, 4096) == 0, "ftruncate");
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  must(memory != MAP_FAILED, "mmap");
  std::strcpy(static_cast<char*>(memory), "through the map");
  both();
  return munmap(memory, 4096);
}
int locks_file() {
  const int file = open("locked", O_RDWR | O_CREAT, 0644);
  must(flock(file, LOCK_EX) == 0, "flock");
  both();
  const pid_t child = fork();
  if (child == 0) {
    const int again = open("locked", O_RDWR);
    _exit(flock(again, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? 0 : 1);
  }
  return WEXITSTATUS(status_of(child));
}
int events() {
  const int event = eventfd(0, EFD_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const itimerspec soon{{0, 0}, {0, 5'000'000}};
  timerfd_settime(timer, 0, &soon, nullptr);
  const int set = epoll_create1(EPOLL_CLOEXEC);
  for (const int descriptor : {event, timer}) {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.fd = descriptor;
    epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &wanted);
  }
  std::thread other([event] {
    const uint64_t one = 1;
    must(write(event, &one, sizeof one) == sizeof one, "write");
  });
  int came = 0;
  while (came != 3) {
    epoll_event happened{};
    if (epoll_wait(set, &happened, 1, -1) == 1) {
      uint64_t value = 0;
      must(read(happened.data.fd, &value, sizeof value) == sizeof value, "read");
      came |= happened.data.fd == event ? 1 : 2;
    }
  }
  other.join();
  say("both");
  return static_cast<int>(both() - 400);
}
int sockets() {
  int ends[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  std::thread other([&] {
    char text[16] = "";
    must(recv(ends[1], text, sizeof text, 0) > 0, "recv");
    must(send(ends[1], "pong", 4, 0) == 4, "send");
  });
  must(send(ends[0], "ping", 4, 0) == 4, "send");
  char text[16] = "";
  must(recv(ends[0], text, sizeof text, 0) == 4, "recv");
  other.join();
  say(text);
  return static_cast<int>(both() - 400);
}

// The process

int environment() {
  setenv("KINDS", "set", 1);
  both();
  say(std::string(getenv("KINDS")) + (getenv("HOME") != nullptr ? " home" : ""));
  // What was ours is not handed on to the programs of others.
  return WEXITSTATUS(std::system("env | grep -c ^LD_PRELOAD"));
}
int names() {
  prctl(PR_SET_NAME, "renamed");
  both();
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  say(name);
  return 0;
}
int affinity() {
  both();
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  say(std::to_string(CPU_COUNT(&set)) + " processors");
  return 0;
}
int threads() {
  std::vector<std::thread> all;
  for (int i = 0; i < 200; ++i) {
    all.emplace_back(work, 5);
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  say(std::to_string(balance));
  return 0;
}
int thread_locals() {
  thread_local Said mine{"main's"};
  (void)&mine;
  std::thread([] {
    thread_local Said its{"the thread's"};
    (void)&its;
    both();
  }).join();
  return 0;
}
int large_memory() {
  std::vector<char> large(64 << 20, 'x');
  both();
  say(std::to_string(large[large.size() - 1]));
  return 0;
}
int no_memory() {
  const rlimit little{512 << 20, 512 << 20};
  both();
  must(setrlimit(RLIMIT_AS, &little) == 0, "setrlimit");
  char* const none = static_cast<char*>(std::malloc(size_t{1} << 30));
  say(none == nullptr ? "none left" : "got it");
  return 0;
}
int futures() {
  auto answer = std::async(std::launch::async, [] {
    both();
    throw std::runtime_error("handed on");
    return 0;
  });
  try {
    return answer.get();
  } catch (const std::runtime_error& error) {
    say(error.what());
  }
  return 0;
}
int loads_library() {
  both();
  void* const library = dlopen("libz.so.1", RTLD_NOW);
  say(library != nullptr || dlerror() != nullptr ? "asked" : "no answer");
  return 0;
}
int drops_rights() {
  both();
  if (geteuid() == 0) {
    must(setgid(65534) == 0 && setuid(65534) == 0, "setuid");
  }
  work(100);
  say(setuid(0) == 0 && geteuid() == 0 ? "still root" : "nobody");
  return 0;
}
int forbids_dumps() {
  prctl(PR_SET_DUMPABLE, 0);
  both();
  say(std::to_string(prctl(PR_GET_DUMPABLE)));
  return 0;
}

const Kind kinds[] = {KIND(returns),
                      KIND(exits_in_thread),
                      KIND(exits_at_once),
                      KIND(quick_exits),
                      KIND(aborts),
                      KIND(faults),
                      KIND(divides),
                      KIND(raises_terminate),
                      KIND(kills_itself),
                      KIND(throws),
                      KIND(throws_in_thread),
                      KIND(exit_handlers),
                      KIND(main_thread_ends),
                      KIND(detached),
                      KIND(raw_exit_group),
                      KIND(last_thread_exits_raw),
                      KIND(canceled),
                      KIND(forks),
                      KIND(forks_in_thread),
                      KIND(child_killed),
                      KIND(runs_shell),
                      KIND(reads_pipe_of_shell),
                      KIND(spawns),
                      KIND(executes),
                      KIND(daemon),
                      KIND(orphans_none),
                      KIND(handles),
                      KIND(jumps_out),
                      KIND(catches_fault),
                      KIND(overflows_stack),
                      KIND(timer),
                      KIND(sleep_interrupted),
                      KIND(waits_for_signal),
                      KIND(signal_descriptor),
                      KIND(mask_kept),
                      KIND(broken_pipe),
                      KIND(broken_pipe_ignored),
                      KIND(reads_input),
                      KIND(writes_files),
                      KIND(changes_folder),
                      KIND(next_descriptor),
                      KIND(closes_all),
                      KIND(few_descriptors),
                      KIND(output_moved),
                      KIND(output_closed),
                      KIND(buffered_output),
                      KIND(maps_file),
                      KIND(locks_file),
                      KIND(events),
                      KIND(sockets),
                      KIND(environment),
                      KIND(names),
                      KIND(affinity),
                      KIND(threads),
                      KIND(thread_locals),
                      KIND(large_memory),
                      KIND(no_memory),
                      KIND(futures),
                      KIND(loads_library),
                      KIND(drops_rights),
                      KIND(forbids_dumps)};

}  // namespace

// Without an argument: the names.
int main(int argc, char** argv) {
  std::vector<Kind> all(std::begin(kinds), std::end(kinds));
  all.insert(all.end(), more_kinds, end_of_more_kinds);
  if (argc < 2) {
    for (const Kind& kind : all) {
      std::puts(kind.name);
    }
    return 0;
  }
  const char* const gate = std::getenv("GATE");
  while (gate != nullptr && access(gate, F_OK) == 0) {
    usleep(1'000);
  }
  unsetenv("GATE");
  for (const Kind& kind : all) {
    if (std::strcmp(kind.name, argv[1]) == 0) {
      return kind.run();
    }
  }
  return 2;
}
