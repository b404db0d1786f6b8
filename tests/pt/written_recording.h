// A stepped run as perf would have recorded it: a perf.data with Intel PT.
#pragma once

#include <functional>
#include <string>

#include "decoders/perf/record.h"
#include "decoders/perf/writer.h"
#include "tests/pt/stepped_run.h"
#include "tests/pt/trace_encoder.h"
#include "tso/model/event.h"

namespace tsomon::test {

struct RecordingOptions {
  uint64_t config = 1 | 1U << 10 | 1U << 13;  // pt, tsc, branch
  uint32_t trace_type = perf::AuxtraceInfo::kIntelPt;
  size_t pieces = 3;     // of each buffer
  size_t truncated = 0;  // the AUX record that ends this piece says so; 0: none
  bool switches = true;
  bool tracepoints = false;           // sched:sched_switch instead of switches
  bool whole = false;                 // perf started the program and traced all of its threads
  bool snapshot = false;              // only what was last in the buffers
  bool kernel = false;                // was traced, too
  int64_t switches_until = kTimeMax;  // then every CPU's records are lost
  std::function<std::string(const std::string&)> path;  // of a module; empty: as it is
  std::string build_id;                                 // of every module
  size_t sample_every = 0;  // steps: registers as an interrupt finds them; 0: none
  bool precise = false;     // as PEBS writes them instead, read 300 cycles later
  size_t aux_size = 0;  // the trace as samples with at most so many of its last bytes; 0: not so
  size_t aux_every = 1000;  // bytes of the trace between two of them
};

std::string perf_data_of(const SteppedRun& run, const EncodedRun& encoded,
                         const RecordingOptions& options = {});

// The same as raw dumps with their list, in `folder`; the list.
std::string trace_list_of(
    const SteppedRun& run, const EncodedRun& encoded,
    const std::function<void(const std::string& name, const std::string& bytes)>& write);

}  // namespace tsomon::test
