// The Intel PT part of a perf.data as pt::Input: trace data, code, threads, clocks.
//
// Streams     pt_streams.h
// Code        Executable mappings of the processes that run (pt_code.h).
// Switches    pt_threads.h
// Samples     With registers (pt_samples.h), and those that PEBS wrote into the trace.
// Misses      The kernel's code, and what the parts miss.
// Memory      Views of `bytes`, which must stay alive; streams of several pieces are joined.
// Complexity  O(records + mappings^2 of a process).
// Errors      As perf::Reader::open().
// Thread-safety: pure function of the file system.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoders/pt/memory/accesses.h"
#include "decoders/pt/packets/input.h"
#include "monitor/pt/pt_code.h"
#include "tso/support/result.h"

namespace tsomon {

struct PtRecording {
  pt::Input input;
  std::deque<std::string> joined;     // bytes that `input` refers to
  std::vector<PtCode::Mapping> code;  // in the order of time
  std::vector<pt::RegisterSample> samples;
  bool branches = true;               // false: PTWRITE only, there is no control flow
  bool partial = false;               // an address filter was set
  bool all_threads = false;           // of the programs, from when they were started
  std::vector<std::string> problems;  // what is missing: the trace is not complete
  std::vector<std::string> notes;
};

// AuxtraceInfo::type of the trace data that a perf.data has, if it has any.
Result<std::optional<uint32_t>> trace_data_type(std::string_view bytes);

Result<PtRecording> read_pt_recording(std::string_view bytes, const FileSearch& files);

}  // namespace tsomon
