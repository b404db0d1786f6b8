// The Intel PT part of a perf.data as pt::Input: trace data, code, threads, clocks.
//
// Streams     One for each AUX buffer. Bytes are missing where the offsets of its pieces leave some
//             out, where an AUX record says TRUNCATED, PARTIAL or COLLISION, and behind a piece
//             that the file cuts off. Of snapshots the last one of each buffer counts.
// Code        Executable mappings of the processes that run, from files with the recorded build-id.
//             A mapping is there from the beginning (of the program that exec started), since
//             nothing else can be executed at its addresses; one that overlaps an older one, from
//             its own time on. Without a file it takes away what it overlaps: code that is not
//             known is a gap, another file's code would be wrong. What a process executed before an
//             exec is a gap, too.
// Switches    SWITCH and SWITCH_CPU_WIDE, without them sched:sched_switch; ITRACE_START for who ran
// first. A first record that
//             switches a thread out says who ran until then. Where records of a CPU were lost,
//             nobody is known to run until the next switch.
// Samples     With registers (pt_samples.h), and those that PEBS wrote into the trace.
// Misses      The kernel's code; memory that was unmapped and mapped again without a record
//             (generated code).
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

#include "decoders/perf/events.h"
#include "decoders/pt/accesses.h"
#include "decoders/pt/input.h"
#include "tso/result.h"

namespace tsomon {

struct PtRecording {
  struct Code {
    int process = 0;
    perf::CodeMapping mapping;  // addresses as the process has them
    std::string file;           // with the code; empty: not found
  };
  pt::Input input;
  std::deque<std::string> joined;  // bytes that `input` refers to
  std::vector<Code> code;          // in the order of time
  std::vector<pt::RegisterSample> samples;
  bool branches = true;               // false: PTWRITE only, there is no control flow
  bool partial = false;               // an address filter was set
  std::vector<std::string> problems;  // what is missing: the trace is not complete
  std::vector<std::string> notes;
};

// AuxtraceInfo::type of the trace data that a perf.data has, if it has any.
Result<std::optional<uint32_t>> trace_data_type(std::string_view bytes);

Result<PtRecording> read_pt_recording(std::string_view bytes, const std::string& sysroot);

}  // namespace tsomon
