// Bytes from one thread to another, of which any number may wait when they are in a file as well.
//
// Purpose     `tsomon run --save` must not hold up what is saved because judging takes long: what
//             is recorded then waits in the recorded program, and is lost when that is killed. So
//             what waits is kept in memory as far as that is little; the rest is read from the
//             file again. Where nothing is saved the writing thread waits, and with it the
//             program.
// Memory      kMost bytes and one piece.
// Thread-safety: one thread calls push() and end(), one pop().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "monitor/process/descriptor.h"

namespace tsomon {

class ByteSpool {
 public:
  static constexpr size_t kMost = size_t{4} << 20;

  // `file`: what is saved can be read there; none: an invalid descriptor.
  explicit ByteSpool(Descriptor file) : file_(std::move(file)) {}

  // `saved`: they are in the file, after those that were pushed before.
  void push(std::string_view bytes, bool saved);
  void end();

  // The next ones replace what is in `bytes`. Waits; false: there are no more, or the file does not
  // have what was saved in it.
  bool pop(std::string& bytes);
  // The file was changed by others.
  bool failed() const { return failed_; }

 private:
  struct Piece {
    std::string bytes;    // empty: they are in the file
    uint64_t offset = 0;  // there
    size_t size = 0;
  };

  Descriptor file_;
  std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable has_pieces_;
  std::deque<Piece> pieces_;
  size_t in_memory_ = 0;
  uint64_t pushed_ = 0;
  bool ended_ = false;
  bool failed_ = false;  // of who pops
};

}  // namespace tsomon
