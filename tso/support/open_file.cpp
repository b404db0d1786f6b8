#include "tso/support/open_file.h"

#include <cerrno>
#include <charconv>
#include <string_view>

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

// Another one for the descriptor that the path names, where that is one of this process; else -1 with EACCES.
int own_descriptor(const std::string& path) {
  constexpr std::string_view kOwn = "/proc/self/fd/";
  int number = -1;
  const char* const end = path.data() + path.size();
  if (!path.starts_with(kOwn) ||
      std::from_chars(path.data() + kOwn.size(), end, number).ptr != end) {
    errno = EACCES;
    return -1;
  }
  const int fd = ::fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (fd >= 0) {
    ::lseek(fd, 0, SEEK_SET);
  }
  return fd;
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
  int fd = ::open(path.c_str(), kHow);
  if (fd < 0 && errno == EACCES) {
    fd = own_descriptor(path);
  }
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
