// Threads that sleep in the kernel in every way that the runtime stands in front of: sleeping
// Each stores to its own place, sleeps, and stores again.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int kWays = 14;
long place[kWays];
int failures = 0;

template <typename Sleep>
void sleeps(int way, Sleep sleep) {
  *const_cast<volatile long*>(&place[way]) = 1;
  errno = 77;
  const long result = sleep();
  if (result < 0 || errno != 77) {
    std::fprintf(stderr, "way %d: %ld, %s\n", way, result, std::strerror(errno));
    ++failures;
  }
  *const_cast<volatile long*>(&place[way]) = 2;
}

}  // namespace

int main() {
  std::printf("place %p\n", static_cast<void*>(place));
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    return 2;
  }
  const int epoll = epoll_create1(0);
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event);
  std::thread thread([&] {
    const timespec soon{0, 1000};
    pollfd file{pair[0], POLLIN, 0};
    char byte = 0;
    iovec buffer{&byte, 1};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    const auto send_one = [&] { return write(pair[1], "x", 1) == 1; };
    sleeps(0, [&] { return nanosleep(&soon, nullptr); });
    sleeps(1, [&] { return clock_nanosleep(CLOCK_MONOTONIC, 0, &soon, nullptr); });
    sleeps(2, [&] { return usleep(1); });
    sleeps(3, [&] { return sleep(0); });
    sleeps(4, [&] { return poll(&file, 1, 1); });
    sleeps(5, [&] { return ppoll(&file, 1, &soon, nullptr); });
    sleeps(6, [&] { return epoll_wait(epoll, &event, 1, 1); });
    sleeps(7, [&] { return epoll_pwait(epoll, &event, 1, 1, nullptr); });
    sleeps(8, [&] {
      timeval time{0, 1};
      return select(0, nullptr, nullptr, nullptr, &time);
    });
    sleeps(9, [&] { return pselect(0, nullptr, nullptr, nullptr, &soon, nullptr); });
    sleeps(10, [&] { return send_one() ? read(pair[0], &byte, 1) : -1; });
    sleeps(11, [&] { return send_one() ? readv(pair[0], &buffer, 1) : -1; });
    sleeps(12, [&] { return send_one() ? recv(pair[0], &byte, 1, 0) : -1; });
    sleeps(13, [&] { return send_one() ? recvmsg(pair[0], &message, 0) : -1; });
  });
  thread.join();
  return failures == 0 ? 0 : 1;
}
