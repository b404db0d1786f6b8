// A recording in a directory (`perf record --threads`) as one perf.data: whoever reads a perf.data
// reads these, too.
//
// Source      perf's perf.data-directory-format: DIR/data is a perf.data, the DIR/data.N have
//             records only, each with a compression of its own.
// Contract    The records of `data`, then those of the parts in the order of their time (those
//             without one stay after the one before them), decompressed, with the trace data
//             after them.
// Memory      The recording twice, decompressed, and its records; at most kMemory times what the files have and
//             kMemoryBase bytes: what follows is missing.
// Errors      As Reader::open(); kMalformed: the recording was not ended.
// Complexity  O(n log n). Thread-safety: pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tso/support/result.h"

namespace tsomon::perf {

struct JoinedDirectory {
  static constexpr uint64_t kMemory = 32;
  static constexpr uint64_t kMemoryBase = uint64_t{64} << 20;

  std::string bytes;
  std::vector<std::string> problems;  // what is missing of the parts, one line each
};

// `parts` by number.
Result<JoinedDirectory> join_directory(std::string_view data,
                                       const std::vector<std::string_view>& parts);

}  // namespace tsomon::perf
