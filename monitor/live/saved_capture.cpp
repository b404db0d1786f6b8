#include "monitor/live/saved_capture.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tsomon {
namespace {

constexpr int kPause = 50;  // milliseconds between two looks whether to give up

}  // namespace

SavedCapture::SavedCapture(const std::string& path) : path_(path) {
  if (path.empty()) {
    return;
  }
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    problem_ = fmt::format("{}: cannot be written: {}", path_, std::strerror(errno));
    return;
  }
  // Of a FIFO, from here on: what reads it may stop.
  if (const int flags = ::fcntl(fd_, F_GETFL); flags >= 0) {
    ::fcntl(fd_, F_SETFL, flags | O_NONBLOCK);
  }
}

void SavedCapture::add(std::string_view bytes, const std::function<bool()>& gives_up) {
  while (fd_ >= 0 && !bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    const bool full = written < 0 && errno == EAGAIN;
    if (full && !gives_up()) {
      pollfd room{fd_, POLLOUT, 0};
      ::poll(&room, 1, kPause);
      continue;
    }
    if (written <= 0) {
      not_whole(full ? "whoever reads it does not go on" : std::strerror(errno));
      finish();
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

Descriptor SavedCapture::reopen() const {
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    return Descriptor();
  }
  return Descriptor(::open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDONLY | O_CLOEXEC));
}

void SavedCapture::finish() {
  // Some file systems tell only now that there was no room.
  if (fd_ >= 0 && ::close(fd_) != 0) {
    not_whole(std::strerror(errno));
  }
  fd_ = -1;
}

// The first reason is the one that counts.
void SavedCapture::not_whole(const char* why) {
  if (problem_.empty()) {
    problem_ = fmt::format("{}: is not whole, it cannot be written: {}", path_, why);
  }
}

}  // namespace tsomon
