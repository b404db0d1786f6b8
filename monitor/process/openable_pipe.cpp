#include "monitor/process/openable_pipe.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tsomon {

OpenablePipe::OpenablePipe(size_t bytes) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) {
    problem_ = fmt::format("cannot create a pipe: {}", std::strerror(errno));
    return;
  }
  fd_ = ends[0];
  writing_ = ends[1];
  path_ = fmt::format("/proc/{}/fd/{}", ::getpid(), writing_);
  if (::access(path_.c_str(), W_OK) != 0) {
    problem_ = fmt::format("{}: {}; is /proc mounted?", path_, std::strerror(errno));
  }
  if (bytes != 0) {
    ::fcntl(fd_, F_SETPIPE_SZ, static_cast<int>(bytes));
  }
}

OpenablePipe::~OpenablePipe() {
  for (const int fd : {fd_, writing_}) {
    if (fd >= 0) {
      ::close(fd);
    }
  }
}

}  // namespace tsomon
