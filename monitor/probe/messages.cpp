#include "monitor/probe/messages.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoders/capture/kernel_calls.h"
#include "monitor/probe/copy.h"
#include "monitor/probe/environment.h"
#include "monitor/probe/real.h"

// Nothing is recorded of what is said here.
TSOMON_REAL(open)
TSOMON_REAL(write)
TSOMON_REAL(close)

namespace tsomon::probe {
namespace {

constexpr int kPatience = 1000;  // milliseconds

bool has_errors = true;  // standard error is open: before prepare_messages() it is not known
bool prepared = false;
dev_t errors_device = 0;
ino_t errors_inode = 0;
char messages[256] = {};  // the FIFO's path; empty: none

bool say(const char* text, size_t size) {
  struct stat now {};
  if (!has_errors || (prepared && (kernel::fstat(STDERR_FILENO, &now) != 0 ||
                                   now.st_dev != errors_device || now.st_ino != errors_inode))) {
    return false;
  }
  // The program might never have written there: a pipe that nobody reads, a terminal that is stopped.
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return kernel::call(SYS_poll, reinterpret_cast<long>(&room), 1, kPatience) == 1 &&
         real_write(STDERR_FILENO, text, size) == static_cast<ssize_t>(size);
}

// Opened for each message: no descriptor is kept in the program.
void warn(const char* text, size_t size) {
  if (messages[0] == '\0') {
    return;
  }
  const int fd = real_open(messages, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    return;
  }
  struct stat status {};
  if (kernel::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) {
    (void)!real_write(fd, text, size);
  }
  real_close(fd);
}

}  // namespace

void prepare_messages() {
  struct stat status {};
  has_errors = kernel::fstat(STDERR_FILENO, &status) == 0;
  errors_device = status.st_dev;
  errors_inode = status.st_ino;
  prepared = true;
  const char* const path = variable(kMessagesVariable);
  const size_t length = path == nullptr ? 0 : std::strlen(path);
  if (path != nullptr && length < sizeof messages) {
    copy(messages, path, length + 1);
  }
}

void warn(const char* format, ...) {
  const int saved_errno = errno;
  char line[1025];  // the first byte: of the FIFO's line
  char* const text = line + 1;
  const size_t room = sizeof line - 2;
  int size = std::snprintf(text, room, "tsomon: ");
  va_list arguments;
  va_start(arguments, format);
  size += std::vsnprintf(text + size, room - static_cast<size_t>(size), format, arguments);
  va_end(arguments);
  size = size < static_cast<int>(room) ? size : static_cast<int>(room) - 1;
  text[size++] = '\n';
  line[0] = say(text, static_cast<size_t>(size)) ? 's' : 'u';
  warn(line, static_cast<size_t>(size) + 1);
  errno = saved_errno;
}

void refuse(int status) {
  warn("!\n", 2);
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

}  // namespace tsomon::probe
