// What the kernel orders, atomics, and what programs promise (orders.cpp).
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orders.h"

extern "C" {
void __tsan_acquire(void* object);
void __tsan_release(void* object);
void AnnotateHappensBefore(const char* file, int line, const volatile void* object);
void AnnotateHappensAfter(const char* file, int line, const volatile void* object);
void AnnotateBenignRaceSized(const char* file, int line, const volatile void* object, size_t size,
                             const char* why);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace orders {
namespace {

char byte = 0;

void puts_byte(int file) { must(write(file, "x", 1) == 1); }
void gets_byte(int file) {
  char mine = 0;
  must(read(file, &mine, 1) == 1);
}

// Signals.

long handled;
std::atomic<int> handlers_ended{0};

// A handler that looks at what was written before the signal was sent.
void handler(int) {
  use(&handled);
  handlers_ended.fetch_add(1, std::memory_order_relaxed);
}
void install(int number) {
  struct sigaction action {};
  action.sa_handler = handler;
  must(sigaction(number, &action, nullptr) == 0);
}
void wait_for_handler(int before) {
  while (handlers_ended.load(std::memory_order_relaxed) == before) {
    usleep(100);
  }
}
void signal_to_thread() {
  const int before = handlers_ended.load();
  install(SIGUSR1);
  std::thread waits([=] { wait_for_handler(before); });
  use(&handled);
  pthread_kill(waits.native_handle(), SIGUSR1);
  waits.join();
}
void timer_signal() {
  const int before = handlers_ended.load();
  install(SIGALRM);
  std::thread waits([=] { wait_for_handler(before); });
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // so that the other one gets it
  use(&handled);
  const itimerval time{{0, 0}, {0, 2000}};
  must(setitimer(ITIMER_REAL, &time, nullptr) == 0);
  waits.join();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

template <typename Take>
void blocked_signal(const Take& take) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // of the threads that are started, too
  hand_over([] { must(kill(getpid(), SIGUSR2) == 0); }, [&] { take(&set); });
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}
void waited_signal() {
  blocked_signal([](const sigset_t* set) {
    int number = 0;
    must(sigwait(set, &number) == 0);
  });
  blocked_signal([](const sigset_t* set) { must(sigwaitinfo(set, nullptr) == SIGUSR2); });
}
void signal_descriptor() {
  blocked_signal([](const sigset_t* set) {
    const int file = signalfd(-1, set, 0);
    signalfd_siginfo info;
    must(read(file, &info, sizeof info) == sizeof info);
    close(file);
  });
}

// Descriptors.

void pipes() {
  std::array<int, 2> ends{};
  must(pipe(ends.data()) == 0);
  hand_over([=] { puts_byte(ends[1]); }, [=] { gets_byte(ends[0]); });
  hand_over([=] { puts_byte(ends[1]); },
            [=] {
              pollfd file{ends[0], POLLIN, 0};
              must(poll(&file, 1, -1) == 1);
            });
  gets_byte(ends[0]);
  hand_over([=] { puts_byte(ends[1]); },
            [=] {
              fd_set set;
              FD_ZERO(&set);
              FD_SET(ends[0], &set);
              must(select(ends[0] + 1, &set, nullptr, nullptr, nullptr) == 1);
            });
  gets_byte(ends[0]);
  const int copy = fcntl(ends[1], F_DUPFD, 0);
  hand_over([=] { puts_byte(copy); }, [=] { gets_byte(ends[0]); });
  close(copy);
  hand_over([=] { close(ends[1]); }, [=] { must(read(ends[0], &byte, 1) == 0); });
  close(ends[0]);
}
// The kernel loads what is sent before anyone receives it, and stores it behind that.
void buffers() {
  std::array<int, 2> ends{};
  must(pipe(ends.data()) == 0);
  static char letter = 0;
  const auto put = [=] {
    letter = 'x';
    must(write(ends[1], &letter, 1) == 1);
  };
  const auto get = [=] {
    must(read(ends[0], &letter, 1) == 1);
    letter = 'y';
  };
  hand_over(put, get);
  hand_over(put, [=] {
    usleep(20000);  // there already
    get();
  });
  close(ends[0]);
  close(ends[1]);
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  hand_over(
      [=] {
        letter = 'x';
        iovec part{&letter, 1};
        must(writev(ends[0], &part, 1) == 1);
      },
      [=] {
        iovec part{&letter, 1};
        must(readv(ends[1], &part, 1) == 1);
        letter = 'y';
      });
  close(ends[0]);
  close(ends[1]);
}
void streams() {
  std::array<int, 2> ends{};
  must(pipe(ends.data()) == 0);
  FILE* const in = fdopen(ends[0], "r");
  FILE* const out = fdopen(ends[1], "w");
  static char text[8] = "";
  static Place place;
  hand_over(
      [=] {
        place.use();
        std::strcpy(text, "a");
        std::fprintf(out, "%s\n", text);
        std::fflush(out);
      },
      [=] {
        must(std::fgets(text, sizeof text, in) == text);
        place.use();
      });
  hand_over(
      [=] {
        place.use();
        std::setvbuf(out, nullptr, _IONBF, 0);  // from here on each call sends
        std::fputc('c', out);
      },
      [=] {
        usleep(20000);  // there already
        must(std::fgetc(in) == 'c');
        place.use();
      });
  hand_over(
      [=] {
        place.use();
        text[0] = '7';
        must(std::fwrite(text, 1, 1, out) == 1);
        std::fputs(" ", out);
      },
      [=] {
        int number = 0;
        must(std::fscanf(in, "%d", &number) == 1 && number == 7);
        text[0] = 'x';
        place.use();
      });
  hand_over(
      [=] {
        place.use();
        std::fclose(out);
      },
      [=] {
        must(std::fread(text, 1, 1, in) == 1 && std::feof(in) == 0);
        must(std::getc(in) == EOF);
        place.use();
      });
  std::fclose(in);
}
void named_pipe() {
  const std::string path = "/tmp/tsomon.orders." + std::to_string(getpid());
  must(mkfifo(path.c_str(), 0600) == 0);
  hand_over(
      [&] {
        const int file = open(path.c_str(), O_WRONLY);
        puts_byte(file);
        close(file);
      },
      [&] {
        const int file = open(path.c_str(), O_RDONLY);
        gets_byte(file);
        close(file);
      });
  unlink(path.c_str());
}
void epoll_set() {
  std::array<int, 2> ends{};
  must(pipe(ends.data()) == 0);
  const int set = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  must(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
  hand_over([=] { puts_byte(ends[1]); },
            [=] {
              epoll_event got{};
              must(epoll_wait(set, &got, 1, -1) == 1);
            });
  close(set);
  close(ends[0]);
  close(ends[1]);
}
void counters() {
  const int count = eventfd(0, 0);
  hand_over([=] { must(eventfd_write(count, 1) == 0); },
            [=] {
              eventfd_t got = 0;
              must(eventfd_read(count, &got) == 0);
            });
  close(count);
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  hand_over(
      [=] {
        const itimerspec time{{0, 0}, {0, 1000}};
        must(timerfd_settime(timer, 0, &time, nullptr) == 0);
      },
      [=] {
        uint64_t got = 0;
        must(read(timer, &got, sizeof got) == sizeof got);
      });
  close(timer);
}

// The one that connects has written before; the one that accepts writes back.
void connection(int family, const sockaddr* address, socklen_t size) {
  const int listener = socket(family, SOCK_STREAM, 0);
  must(bind(listener, address, size) == 0 && listen(listener, 1) == 0);
  sockaddr_storage bound{};
  socklen_t bound_size = sizeof bound;
  must(getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bound_size) == 0);
  long first = 0;
  long second = 0;
  std::thread accepts([&] {
    const int file = accept(listener, nullptr, nullptr);
    must(file >= 0);
    use(&first);
    use(&second);
    must(send(file, "x", 1, 0) == 1);
    close(file);
  });
  std::thread connects([&] {
    use(&first);
    const int file = socket(family, SOCK_STREAM, 0);
    must(connect(file, reinterpret_cast<const sockaddr*>(&bound), bound_size) == 0);
    must(recv(file, &byte, 1, 0) == 1);
    use(&second);
    close(file);
  });
  accepts.join();
  connects.join();
  close(listener);
}
sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
void connections() {
  const sockaddr_in here = loopback();
  connection(AF_INET, reinterpret_cast<const sockaddr*>(&here), sizeof here);
  sockaddr_un path{};
  path.sun_family = AF_UNIX;
  std::snprintf(path.sun_path, sizeof path.sun_path, "/tmp/tsomon.orders.socket.%d", getpid());
  connection(AF_UNIX, reinterpret_cast<const sockaddr*>(&path), sizeof path);
  unlink(path.sun_path);
}
void messages() {
  const sockaddr_in here = loopback();
  const int takes = socket(AF_INET, SOCK_DGRAM, 0);
  const int gives = socket(AF_INET, SOCK_DGRAM, 0);
  must(bind(takes, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  must(getsockname(takes, reinterpret_cast<sockaddr*>(&bound), &size) == 0);
  hand_over(
      [&] { must(sendto(gives, "x", 1, 0, reinterpret_cast<const sockaddr*>(&bound), size) == 1); },
      [=] { must(recv(takes, &byte, 1, 0) == 1); });
  close(takes);
  close(gives);
}
// Each has opened the file for itself: so they exclude one another.
void file_locks() {
  std::string path = "/tmp/tsomon.orders.lock.XXXXXX";
  close(mkstemp(path.data()));
  Place places[2];
  both([&](int) {
    const int file = open(path.c_str(), O_RDWR);
    must(flock(file, LOCK_EX) == 0);
    places[0].use();
    must(flock(file, LOCK_UN) == 0);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    must(fcntl(file, F_OFD_SETLKW, &lock) == 0);
    places[1].use();
    lock.l_type = F_UNLCK;
    must(fcntl(file, F_OFD_SETLK, &lock) == 0);
    close(file);
  });
  unlink(path.c_str());
}
// A number that is given out again.
void reused_descriptor() {
  long place[1024] = {};
  both([&](int) {
    for (int i = 0; i < 10; ++i) {
      const int file = open("/dev/null", O_WRONLY);
      must(file >= 0 && file < 1024);
      use(&place[file]);
      close(file);
    }
  });
}

// Atomics.

void flag() {
  std::atomic<bool> ready{false};
  hand_over([&] { ready.store(true, std::memory_order_release); },
            [&] {
              while (!ready.load(std::memory_order_acquire)) {
              }
            });
  std::atomic<bool> woken{false};
  hand_over(
      [&] {
        woken.store(true);
        woken.notify_one();
      },
      [&] { woken.wait(false); });
}
void spin_lock() {
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  Place place;
  both([&](int) {
    for (int i = 0; i < 5; ++i) {
      while (lock.test_and_set(std::memory_order_acquire)) {
      }
      place.use();
      lock.clear(std::memory_order_release);
    }
  });
}

// Children: what a forked one does is its own.

void children() {
  long place = 0;
  pthread_atfork([] {}, [] {}, [] {});
  use(&place);
  const pid_t child = fork();
  if (child == 0) {
    use(&place);
    _exit(0);
  }
  int status = 0;
  must(waitpid(child, &status, 0) == child && status == 0);
  use(&place);
}

// Promises of the program.

// An order that nothing shows: the time.
void annotated() {
  Place places[2];
  int promised[2];
  std::thread takes([&] {
    usleep(20000);
    AnnotateHappensAfter(__FILE__, __LINE__, &promised[0]);
    places[0].use();
    __tsan_acquire(&promised[1]);
    places[1].use();
  });
  places[0].use();
  AnnotateHappensBefore(__FILE__, __LINE__, &promised[0]);
  places[1].use();
  __tsan_release(&promised[1]);
  takes.join();
}
void benign() {
  static long figures[2];
  AnnotateBenignRaceSized(__FILE__, __LINE__, figures, sizeof figures, "figures");
  both([](int number) { use(&figures[number / 2]); });
}
void ignored() {
  static long figure;
  both([](int) {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    use(&figure);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  });
}
void fibers() {
  std::thread([] {
    Place place;
    void* const outer = __tsan_get_current_fiber();
    void* const inner = __tsan_create_fiber(0);
    for (int i = 0; i < 3; ++i) {
      place.use();
      __tsan_switch_to_fiber(inner, 0);
      place.use();
      __tsan_switch_to_fiber(outer, 0);
    }
    __tsan_destroy_fiber(inner);
  }).join();
}

// A part of a local variable that another thread knows by the whole.
struct Counted {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  long waiting = 0;
  long done = 0;
};
void local_variable() {
  Counted here;
  pthread_t other{};
  must(pthread_create(
           &other, nullptr,
           [](void* all) -> void* {
             auto* const one = static_cast<Counted*>(all);
             pthread_mutex_lock(&one->mutex);
             while (one->waiting == 0) {
               pthread_cond_wait(&one->changed, &one->mutex);
             }
             one->done = one->waiting;
             pthread_mutex_unlock(&one->mutex);
             return nullptr;
           },
           &here) == 0);
  pthread_mutex_lock(&here.mutex);
  here.waiting += 2;
  pthread_mutex_unlock(&here.mutex);
  pthread_cond_signal(&here.changed);
  must(pthread_join(other, nullptr) == 0);
  must(here.done == 2);
}

// Counterparts: races of buffers, and of such a variable.

void race_of_local() {
  Counted here;
  pthread_t other{};
  must(pthread_create(
           &other, nullptr,
           [](void* all) -> void* {
             ++static_cast<Counted*>(all)->done;
             return nullptr;
           },
           &here) == 0);
  here.done += 2;
  must(pthread_join(other, nullptr) == 0);
  must(here.done != 0);
}

char shared[] = "shared\n";

void race_of_write() {
  const int file = open("/dev/null", O_WRONLY);
  both([&](int i) {
    if (i == 0) {
      must(write(file, shared, 3) == 3);
    } else {
      shared[1] = 'H';
    }
  });
}
void race_of_read() {
  const int file = open("/dev/zero", O_RDONLY);
  both([&](int) { must(read(file, shared, 3) == 3); });
}
void race_of_puts() {
  both([&](int i) {
    if (i == 0) {
      std::puts(shared);
    } else {
      shared[1] = 'H';
    }
  });
}

// What a stream keeps is not sent when it is read.
void race_of_stream() {
  FILE* const file = std::fopen("/dev/null", "w");
  both([&](int i) {
    if (i == 0) {
      std::fprintf(file, "%s", shared);
    } else {
      std::fflush(file);
      shared[1] = 'H';
    }
  });
  std::fclose(file);
}

}  // namespace

const std::vector<Way>& kernel_races() {
  static const std::vector<Way> ways = {
      {"race_of_write", race_of_write}, {"race_of_read", race_of_read},
      {"race_of_puts", race_of_puts},   {"race_of_stream", race_of_stream},
      {"race_of_local", race_of_local},
  };
  return ways;
}

const std::vector<Way>& kernel_ways() {
  static const std::vector<Way> ways = {
      {"signal_to_thread", signal_to_thread},
      {"timer_signal", timer_signal},
      {"waited_signal", waited_signal},
      {"signal_descriptor", signal_descriptor},
      {"pipes", pipes},
      {"buffers", buffers},
      {"streams", streams},
      {"named_pipe", named_pipe},
      {"epoll_set", epoll_set},
      {"counters", counters},
      {"connections", connections},
      {"messages", messages},
      {"file_locks", file_locks},
      {"reused_descriptor", reused_descriptor},
      {"flag", flag},
      {"local_variable", local_variable},
      {"atomic_spin_lock", spin_lock},
      {"children", children},
      {"annotated", annotated},
      {"benign", benign},
      {"ignored", ignored},
      {"fibers", fibers},
  };
  return ways;
}

}  // namespace orders
