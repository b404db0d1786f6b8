#include "tso/support/open_file.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tso/support/stoppable_read.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr int kHow = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

bool is_of_type(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

// A pipe that had no writer yet is never at its end for poll(2), but for read(2).
void wait_for_writer(int fd) {
  if (current_meter() != nullptr) {
    wait_unless_stopped(fd);
    return;
  }
  for (pollfd state{fd, POLLIN, 0}; ::poll(&state, 1, -1) < 0 && errno == EINTR;) {
  }
}

}  // namespace

int open_input_file(const std::string& path) {
  const int fd = ::open(path.c_str(), kHow);
  if (fd < 0) {
    return fd;
  }
  if (is_of_type(fd, S_IFIFO)) {
    try {
      wait_for_writer(fd);
    } catch (...) {
      ::close(fd);
      throw;
    }
  }
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

int open_regular_file(const std::string& path) {
  const int fd = ::open(path.c_str(), kHow);
  if (fd >= 0 && !is_of_type(fd, S_IFREG)) {
    ::close(fd);
    errno = EINVAL;
    return -1;
  }
  return fd;
}

bool is_regular_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace tsomon
