// Whether the writer thread packs what it writes.
//
// zstd takes 2 to 5 ns for each byte of tokens, more than all else that the writer thread does. On
// a processor of its own that costs the program nothing; on one that the program's threads need, it
// is the largest part of what recording costs. The kernel counts how often a thread of the process
// was put off a processor though it could have gone on: where that happened since the last chunk,
// nobody's processor is free, and the chunk is written as it is.
//
// Small       Chunks below a kilobyte, of threads that did little, are written as they are.
// Bound       So many bytes are written unpacked at most; then everything is packed.
// Option      level=N: always packed with level N, or with 0 never.
// Cost        One system call for each chunk. Not thread-safe: of the writer thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/resource.h>

#include "monitor/probe/options.h"

namespace tsomon::probe {

class Packing {
 public:
  static constexpr uint64_t kMostUnpacked = 256U << 20;
  static constexpr size_t kSmall = 1024;

  bool wanted(const Options& options, size_t size) {
    if (options.level_is_given || unpacked_ + size > kMostUnpacked) {
      return options.level != 0;
    }
    if (size < kSmall) {
      return false;
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const bool pressed = used.ru_nivcsw != put_off_;
    put_off_ = used.ru_nivcsw;
    unpacked_ += pressed ? size : 0;
    return !pressed;
  }

 private:
  long put_off_ = 0;
  uint64_t unpacked_ = 0;
};

}  // namespace tsomon::probe
