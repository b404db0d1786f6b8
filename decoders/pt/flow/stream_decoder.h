// One stream: by its packets (fast_flow.h), or by libipt's block decoder and its events; and the
// pieces of threads' paths that come out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoders/pt/flow/flow.h"

namespace tsomon::pt {

struct PathPiece {
  int process = 0;
  int thread = 0;
  int64_t lo = kTimeMin;  // it began then or later, and after what ran before it
  int64_t run = 0;        // when the thread was switched to
  uint64_t entered = 0;   // address of its first block; 0: not known
  uint64_t expected =
      0;  // where the thread goes on after it, unless the kernel decides; 0: not known
  std::vector<PathEntry> entries;
};

struct StreamGap {
  int64_t lo = kTimeMin;
  int64_t hi = kTimeMax;
};

struct DecodedStream {
  std::vector<PathPiece> pieces;
  std::vector<StreamGap> gaps;
  std::map<std::string, uint64_t> problems;  // and how often
  uint64_t of_nobody = 0;                    // Flow
  uint64_t instructions = 0;
  uint64_t instructions_walked = 0;
  std::unique_ptr<CodeCache> code;
};

DecodedStream decode_stream(const Input& input, const TraceStream& stream,
                            const FlowOptions& options);

}  // namespace tsomon::pt
