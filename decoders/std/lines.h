// Whole lines out of a file, a pipe or memory, in a buffer of bounded size.
//
// Purpose     The floor under the reader of text traces: each fill() gives a run of whole lines
//             that can be scanned without bounds checks, because every line ends in '\n' (one is
//             put after a last line that has none) and kSlack bytes after the run are readable.
// Memory      One buffer of `buffer_bytes`; it doubles when a single line does not fit, up to
//             kMaxLine. Files are read, not mapped: the copy into a buffer that stays in the cache
//             costs less than the page faults, and pipes need it anyway.
// Errors      kUnreadable when a read fails, kMalformed when a line is longer than kMaxLine.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "tso/support/result.h"

namespace tsomon::std_trace {

class LineBuffer {
 public:
  static constexpr size_t kSlack = 64;
  static constexpr size_t kMaxLine = size_t{16} << 20;

  LineBuffer(int fd, bool owns_fd, size_t buffer_bytes);
  LineBuffer(std::string_view memory, size_t buffer_bytes);  // `memory` must stay alive
  ~LineBuffer();
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;

  // Replaces [begin(), end()) by the next whole lines; false at the end of the input.
  Result<bool> fill();
  const char* begin() const { return buffer_.get(); }
  const char* end() const { return buffer_.get() + lines_end_; }
  size_t capacity() const { return capacity_; }

 private:
  Result<size_t> read_some(char* to, size_t room);
  void allocate(size_t capacity);

  int fd_ = -1;
  bool owns_fd_ = false;
  std::string_view memory_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t filled_ = 0;     // bytes in the buffer
  size_t lines_end_ = 0;  // of these, bytes of whole lines
  uint64_t consumed_ = 0;
  bool at_end_ = false;
};

}  // namespace tsomon::std_trace
