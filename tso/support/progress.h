// How far a long check is, for somebody else to look at now and then.
//
// Thread-safety: the check adds, any thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace tsomon {

struct Progress {
  std::atomic<uint64_t> events{0};    // of the input, read so far
  std::atomic<uint64_t> groups{0};    // of units that have to be searched, as far as is known
  std::atomic<uint64_t> searched{0};  // of these
};

}  // namespace tsomon
