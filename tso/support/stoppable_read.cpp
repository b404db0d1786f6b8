#include "tso/support/stoppable_read.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "tso/support/work.h"

namespace tsomon {

void wait_unless_stopped(int fd) {
  constexpr int kPoll = 50;  // milliseconds
  for (int ready = 0; current_meter() != nullptr && ready == 0;) {
    pollfd state{fd, POLLIN, 0};
    ready = ::poll(&state, 1, kPoll);
    if (stop_asked()) {
      throw WorkEnded(WorkLimit::kStopped);
    }
    if (ready < 0 && errno == EINTR) {
      ready = 0;
    }
  }
}

ssize_t read_unless_stopped(int fd, void* to, size_t size) {
  for (;;) {
    wait_unless_stopped(fd);
    const ssize_t got = ::read(fd, to, size);
    if (got >= 0 || errno != EINTR) {
      return got;
    }
  }
}

}  // namespace tsomon
