#include "decoders/capture/output_file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "decoders/capture/format.h"
#include "decoders/capture/kernel_calls.h"

namespace tsomon::capture {
namespace {

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

// Begins like a capture, also when its header is damaged and only the first chunk is whole.
bool holds_capture(int fd) {
  char head[128];
  const ssize_t size = kernel::pread(fd, head, sizeof head, 0);
  if (size >= static_cast<ssize_t>(sizeof kFileMagic) &&
      std::memcmp(head, &kFileMagic, sizeof kFileMagic) == 0) {
    return true;
  }
  for (ssize_t at = 0; at + static_cast<ssize_t>(sizeof kChunkMagic) <= size; ++at) {
    if (std::memcmp(head + at, &kChunkMagic, sizeof kChunkMagic) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

int OutputFile::open(const char* path, bool must_be_new) {
  close();
  // O_APPEND: the kernel finds the end and appends in one step, whoever else is appending.
  int fd = kernel::open(
      path, O_WRONLY | O_CREAT | (must_be_new ? O_EXCL : 0) | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return errno;
  }
  struct stat status {};
  if (kernel::fstat(fd, &status) != 0) {
    const int error = errno;
    kernel::close(fd);
    return error;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (S_ISREG(status.st_mode) && status.st_size != 0) {
    const int reading = kernel::open(path, O_RDONLY | O_CLOEXEC);
    const bool capture = reading >= 0 && is_it(reading) && holds_capture(reading);
    if (reading >= 0) {
      kernel::close(reading);
    }
    if (!capture || ftruncate(fd, 0) != 0) {
      kernel::close(fd);
      return capture ? EIO : kNotACapture;
    }
  }
  fd = put_high(fd);
  // Where standard output was closed the program would write into the capture.
  if (fd <= STDERR_FILENO) {
    kernel::close(fd);
    return EMFILE;
  }
  keep_path(path);
  owner_.store(0, std::memory_order_relaxed);
  gone_.store(false, std::memory_order_relaxed);
  fd_.store(fd, std::memory_order_relaxed);
  return 0;
}

int OutputFile::take(int descriptor) {
  close();
  struct stat status {};
  const bool empty = kernel::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                     status.st_size == 0 && fcntl(descriptor, F_SETFL, O_APPEND) == 0;
  if (!empty) {
    kernel::close(descriptor);
    return EINVAL;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  path_[0] = '\0';
  gone_.store(false, std::memory_order_relaxed);
  owner_.store(this_thread(), std::memory_order_seq_cst);
  fd_.store(descriptor, std::memory_order_relaxed);
  return 0;
}

// Out of the way of what counts descriptors from below. The kernel's table grows with the number.
int OutputFile::put_high(int fd) {
  constexpr rlim_t kHighest = 8192;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    limit.rlim_cur = 1024;
  }
  for (rlim_t at = (limit.rlim_cur < kHighest ? limit.rlim_cur : kHighest); at > 3; at -= at / 4) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(at > 16 ? at - 16 : 3));
    if (high >= 0) {
      kernel::close(fd);
      return high;
    }
  }
  return fd;
}

void OutputFile::keep_path(const char* path) {
  size_t size = 0;
  if (*path != '/') {
    if (getcwd(path_, sizeof path_ - 1) == nullptr) {
      path_[0] = '\0';
      return;
    }
    size = std::strlen(path_);
    path_[size++] = '/';
  }
  const size_t rest = std::strlen(path);
  if (size + rest + 1 > sizeof path_) {
    path_[0] = '\0';
    return;
  }
  std::memcpy(path_ + size, path, rest + 1);
}

bool OutputFile::is_it(int fd) const {
  struct stat status {};
  return fd >= 0 && kernel::fstat(fd, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

// Not for ever: a FIFO may have lost its reader.
int OutputFile::open_again() const { return path_[0] == '\0' ? -1 : open_as_it(path_); }

int OutputFile::open_as_it(const char* path) const {
  const int fd = kernel::open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0 && (!is_it(fd) || fcntl(fd, F_SETFL, O_APPEND) != 0)) {
    kernel::close(fd);
    return -1;
  }
  return fd;
}

bool OutputFile::keep_apart() {
  const int fd = fd_.load(std::memory_order_relaxed);
  const auto here = static_cast<unsigned>(fd);
  if (fd <= 0 || syscall(SYS_close_range, here + 1, ~0U, CLOSE_RANGE_UNSHARE) != 0) {
    return false;
  }
  syscall(SYS_close_range, 0U, here - 1, 0U);
  owner_.store(this_thread(), std::memory_order_seq_cst);
  return true;
}

void OutputFile::leave_program() {
  const int fd = fd_.load(std::memory_order_relaxed);
  if (is_it(fd)) {
    kernel::close(fd);
  }
}

// In the other thread's table, if not at its path: that is out of reach once the program has shut itself in.
int OutputFile::open_for_program() {
  const int there = fd_.load(std::memory_order_relaxed);
  const pid_t owner = owner_.load(std::memory_order_relaxed);
  if (owner == 0) {
    return there;
  }
  int fd = open_again();
  if (fd < 0) {
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/task/%d/fd/%d", owner, there);
    fd = open_as_it(name);
  }
  return fd >= 0 ? put_high(fd) : -1;
}

void OutputFile::come_back(int fd) {
  fd_.store(fd, std::memory_order_relaxed);
  owner_.store(0, std::memory_order_seq_cst);
}

void OutputFile::close_inherited() {
  if (owner_.load(std::memory_order_relaxed) == 0) {
    leave_program();
  }
  fd_.store(-1, std::memory_order_relaxed);
}

void OutputFile::close() {
  const int fd = fd_.exchange(-1, std::memory_order_relaxed);
  const pid_t owner = owner_.load(std::memory_order_relaxed);
  if ((owner == 0 || owner == this_thread()) && is_it(fd)) {
    kernel::close(fd);
  }
}

int OutputFile::append(iovec* parts, int count, std::atomic<uint64_t>* written) {
  const pid_t owner = owner_.load(std::memory_order_seq_cst);
  const bool visiting = owner != 0 && owner != this_thread();
  int fd = fd_.load(std::memory_order_relaxed);
  if (fd < 0 || gone_.load(std::memory_order_relaxed)) {
    return EBADF;
  }
  if (visiting) {
    fd = open_again();
  } else if (!is_it(fd)) {
    const int again = open_again();
    fd = again >= 0 ? put_high(again) : -1;
    if (fd >= 0) {
      fd_.store(fd, std::memory_order_relaxed);
    }
  }
  if (fd < 0) {
    if (!visiting) {
      gone_.store(true, std::memory_order_relaxed);
    }
    return EBADF;
  }
  int error = 0;
  iovec* part = parts;
  while (part != parts + count) {
    const ssize_t size = writev(fd, part, static_cast<int>(parts + count - part));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      error = size < 0 ? errno : ENOSPC;
      break;
    }
    written->fetch_add(static_cast<uint64_t>(size), std::memory_order_relaxed);
    size_t rest = static_cast<size_t>(size);
    while (part != parts + count && rest >= part->iov_len) {
      rest -= part->iov_len;
      ++part;
    }
    if (part != parts + count) {
      part->iov_base = static_cast<char*>(part->iov_base) + rest;
      part->iov_len -= rest;
    }
  }
  if (visiting) {
    kernel::close(fd);
  }
  return error;
}

}  // namespace tsomon::capture
