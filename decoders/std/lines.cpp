#include "decoders/std/lines.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "tso/support/stoppable_read.h"

namespace tsomon::std_trace {

LineBuffer::LineBuffer(int fd, bool owns_fd, size_t buffer_bytes) : fd_(fd), owns_fd_(owns_fd) {
  allocate(std::clamp(buffer_bytes, size_t{1}, kMaxLine));
}

LineBuffer::LineBuffer(std::string_view memory, size_t buffer_bytes) : memory_(memory) {
  allocate(std::clamp(buffer_bytes, size_t{1}, kMaxLine));
}

LineBuffer::~LineBuffer() {
  if (owns_fd_) {
    ::close(fd_);
  }
}

void LineBuffer::allocate(size_t capacity) {
  // One byte more for the newline that a last line may lack.
  auto grown = std::make_unique<char[]>(capacity + 1 + kSlack);
  if (filled_ != 0) {
    std::memcpy(grown.get(), buffer_.get(), filled_);
  }
  buffer_ = std::move(grown);
  capacity_ = capacity;
}

Result<size_t> LineBuffer::read_some(char* to, size_t room) {
  if (fd_ < 0) {
    const size_t count = memory_.copy(to, room);
    memory_.remove_prefix(count);
    return count;
  }
  const ssize_t count = read_unless_stopped(fd_, to, room);
  if (count < 0) {
    return tl::unexpected<Error>(Error{
        ErrorKind::kUnreadable,
        {},
        consumed_ + filled_ == 0 ? std::string() : fmt::format("byte {}", consumed_ + filled_),
        fmt::format("cannot be read: {}", std::strerror(errno))});
  }
  return static_cast<size_t>(count);
}

Result<bool> LineBuffer::fill() {
  consumed_ += lines_end_;
  filled_ -= lines_end_;
  std::memmove(buffer_.get(), buffer_.get() + lines_end_, filled_);
  lines_end_ = 0;
  while (!at_end_) {
    if (filled_ == capacity_) {
      if (capacity_ >= kMaxLine) {
        return tl::unexpected<Error>(Error{
            ErrorKind::kMalformed,
            {},
            fmt::format("byte {}", consumed_),
            fmt::format("expected a line of at most {} bytes, found a longer one", kMaxLine)});
      }
      allocate(std::min(capacity_ * 2, kMaxLine));
    }
    const auto got = read_some(buffer_.get() + filled_, capacity_ - filled_);
    if (!got) {
      return tl::unexpected<Error>(got.error());
    }
    if (*got == 0) {
      at_end_ = true;
      if (filled_ != 0) {
        buffer_[filled_++] = '\n';
        lines_end_ = filled_;
        return true;
      }
      break;
    }
    const void* newline = ::memrchr(buffer_.get() + filled_, '\n', *got);
    filled_ += *got;
    if (newline != nullptr) {
      lines_end_ = static_cast<size_t>(static_cast<const char*>(newline) - buffer_.get()) + 1;
      return true;
    }
  }
  return false;
}

}  // namespace tsomon::std_trace
