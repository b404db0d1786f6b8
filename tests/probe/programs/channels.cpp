// What threads hand to each other by way of descriptors: channels
//
// Each way has two threads that use one place, the second one after the first one, which only the
// kernel knows.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr int kWays = 7;
long place[kWays];

void use(int way, long value) { *const_cast<volatile long*>(&place[way]) = value; }

// `give` runs in one thread, `take` in another one, which begins before it.
template <typename Give, typename Take>
void hand_over(int way, Give give, Take take) {
  std::thread taker([=] {
    take();
    use(way, 2);
  });
  std::thread giver([=] {
    use(way, 1);
    give();
  });
  giver.join();
  taker.join();
}

void must(bool worked) {
  if (!worked) {
    std::perror("channels");
    std::exit(1);
  }
}

char byte = 0;

}  // namespace

int main() {
  std::printf("place %p\n", static_cast<void*>(place));
  int ends[2];
  must(pipe(ends) == 0);
  hand_over(
      0, [=] { must(write(ends[1], "x", 1) == 1); }, [=] { must(read(ends[0], &byte, 1) == 1); });
  int copy = dup(ends[1]);
  iovec buffer{&byte, 1};
  hand_over(
      1, [=] { must(writev(copy, &buffer, 1) == 1); },
      [=] { must(readv(ends[0], &buffer, 1) == 1); });
  close(copy);
  hand_over(
      2, [=] { must(close(ends[1]) == 0); }, [=] { must(read(ends[0], &byte, 1) == 0); });
  int pair[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  hand_over(
      3, [=] { must(send(pair[0], "x", 1, 0) == 1); },
      [=] { must(recv(pair[1], &byte, 1, 0) == 1); });
  const int count = eventfd(0, 0);
  hand_over(
      4, [=] { must(eventfd_write(count, 1) == 0); },
      [=] {
        long got = 0;
        must(read(count, &got, sizeof got) == sizeof got);
      });
  // A set of which the taker does not know yet what it waits for.
  const int epoll = epoll_create1(0);
  must(write(pair[0], "x", 1) == 1);
  hand_over(
      5,
      [=] {
        epoll_event event{};
        event.events = EPOLLIN;
        must(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[1], &event) == 0);
      },
      [=] {
        epoll_event event{};
        must(epoll_wait(epoll, &event, 1, -1) == 1);
      });
  // The number is given out again.
  const int number = open("/dev/null", O_RDONLY);
  hand_over(
      6, [=] { must(close(number) == 0); },
      [=] {
        int got = -1;
        while (got != number) {
          if (got >= 0) {
            close(got);
          }
          got = open("/dev/null", O_RDONLY);
          must(got >= 0);
        }
      });
  return 0;
}
