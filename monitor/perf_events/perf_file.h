// A perf.data that is written while the recording goes on.
//
// Contract    Records go to the file as they are; finish() fills in what the header says about
//             their size. A file that was not finished is read to its end by perf and by tsomon.
// Errors      kEnvironment: the file cannot be written.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/perf/writer.h"
#include "monitor/perf_events/rings.h"
#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon::pt_live {

class PerfFile {
 public:
  static Result<PerfFile> create(const std::string& path,
                                 std::vector<perf::WrittenAttribute> attributes);

  Result<bool> add(std::string_view records);
  // `cpu` or `thread`: the other one is -1. `reference` tells snapshots apart.
  Result<bool> add_trace(const AuxRing::Piece& piece, uint32_t buffer, int cpu, int thread,
                         uint64_t reference);
  Result<bool> finish();
  uint64_t trace_bytes() const { return trace_bytes_; }

 private:
  PerfFile(Descriptor file, std::vector<perf::WrittenAttribute> attributes)
      : file_(std::move(file)), attributes_(std::move(attributes)) {}

  Descriptor file_;
  std::vector<perf::WrittenAttribute> attributes_;
  uint64_t begin_ = 0;  // of the records
  uint64_t end_ = 0;
  uint64_t trace_bytes_ = 0;
};

}  // namespace tsomon::pt_live
