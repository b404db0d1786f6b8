#include "monitor/events/read_input.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tso/support/open_file.h"
#include "tso/support/stoppable_read.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

tl::unexpected<Error> unreadable(const char* what, int error) {
  return fail(ErrorKind::kUnreadable, std::string(what) + std::strerror(error));
}

Result<std::string> read_all(int fd, size_t max_bytes) {
  std::string bytes;
  struct stat status {};
  const bool known_size = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) {
      // One byte more than the file has: the end then shows without another growth.
      bytes.resize(known_size && size == 0
                       ? std::min(static_cast<size_t>(status.st_size), max_bytes) + 1
                       : 2 * size + (size_t{1} << 16));
    }
    const ssize_t got = read_unless_stopped(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0) {
      return unreadable("cannot be read: ", errno);
    }
    if (got == 0) {
      bytes.resize(size);
      return bytes;
    }
    size += static_cast<size_t>(got);
    if (!known_size) {
      more_input(static_cast<uint64_t>(got));
    }
    if (size > max_bytes) {
      return fail(ErrorKind::kUnreadable,
                  fmt::format("expected at most {} bytes, found more", max_bytes));
    }
  }
}

Result<std::string> open_and_read(const std::string& path, size_t max_bytes) {
  if (path == "-") {
    return read_all(STDIN_FILENO, max_bytes);
  }
  const int fd = open_input_file(path);
  if (fd < 0) {
    return unreadable("cannot be opened: ", errno);
  }
  auto bytes = read_all(fd, max_bytes);
  ::close(fd);
  return bytes;
}

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "<stdin>" : path; }

Result<std::string> read_input(const std::string& path, size_t max_bytes) {
  auto bytes = open_and_read(path, max_bytes);
  if (!bytes) {
    bytes.error().input = input_name(path);
  }
  return bytes;
}

}  // namespace tsomon
