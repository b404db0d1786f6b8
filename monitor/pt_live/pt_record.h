// Records a program's Intel PT trace into a perf.data.
//
// Purpose     What `tsomon check` reads, without the perf tool: branches of the user code with time
//             as exact as the processor has it, PTWRITE where it is there, and beside it mappings,
//             names, threads and switches.
// Whole       Everything from the start (of the program; of the recording for a process that runs
//             already). Where the areas fill faster than they are written, the kernel leaves out
//             and says so.
// Snapshot    A flight recorder: the areas are overwritten, and written on SIGUSR2 to this process
//             and at the end.
// Filter      Functions of the executable whose name matches; not more than the processor has
//             address filters.
// Errors      kEnvironment with the remedy: no Intel PT, no permission, no memory. kUsage: no such
//             function, too many of them, no such process.
// Thread-safety: one at a time in a process; takes SIGUSR2, and SIGINT and SIGTERM for a process
//             that it has not started.
#pragma once

#include <string>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "monitor/pt_live/recording.h"
#include "tso/support/result.h"

namespace tsomon::pt_live {

struct PtRecordRequest {
  std::vector<std::string> command;  // or
  pid_t pid = 0;
  std::string output;
  bool snapshot = false;
  bool per_thread = false;  // a buffer for each thread; threads that start later are not recorded
  std::vector<std::string> filter;       // patterns of functions
  size_t trace_bytes = size_t{4} << 20;  // of each buffer; rounded up to a power of two
};

struct PtRecordResult {
  int status = 0;            // of the command, as exit_status(); 0 of a process
  uint64_t trace_bytes = 0;  // written
  uint64_t snapshots = 0;
};

// What is recorded, and the areas for it: by `pid`, `snapshot`, `per_thread`, `filter` and
// `trace_bytes` of the request, and the processor.
Result<RecordingSetup> pt_setup(const PtRecordRequest& request);
// The same with other events than the processor's trace. A setup of sideband events alone needs no
// Intel PT.
RecordingSetup setup_of(const PtRecordRequest& request, std::vector<perf_event_attr> events,
                        std::vector<uint64_t> auxtrace_values);
// What is recorded beside the trace.
perf_event_attr sideband_event(bool inherit, bool on_exec);

Result<PtRecordResult> record_pt(const PtRecordRequest& request);
Result<PtRecordResult> record_with(const PtRecordRequest& request, const RecordingSetup& setup);

// "filter 0xOFFSET/0xSIZE@FILE,..." for the functions of the file.
Result<std::string> filter_of(const std::string& file, const std::vector<std::string>& patterns,
                              uint64_t most);

}  // namespace tsomon::pt_live
