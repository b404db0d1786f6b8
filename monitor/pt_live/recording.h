// A recording under way: the rings of a process, and the perf.data that they go to.
//
// Whole       Records and trace go to the file as they come, with write().
// Snapshot    The trace areas are overwritten, and the records of the last time kept in memory
//             (recent_records.h), until dump() writes both.
// Errors      kEnvironment with the remedy; kUsage: there is no such process.
// Thread-safety: none, but for wait(), which may run beside anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/perf_events/event_rings.h"
#include "monitor/perf_events/perf_file.h"
#include "monitor/pt_live/recent_records.h"
#include "tso/support/result.h"

namespace tsomon::pt_live {

struct RecordingSetup {
  RingRequest rings;  // without the threads
  // What the file says of the trace, and the address filter. Empty: no trace is recorded, no
  // filter.
  std::vector<uint64_t> auxtrace_values;
  std::string filter;
};

class Recording {
 public:
  // `running`: it is recorded from now on. Else it is about to execute its program, and the events
  // begin with that by themselves.
  static Result<std::unique_ptr<Recording>> begin(RecordingSetup setup, const std::string& output,
                                                  pid_t pid, bool running);

  // Until there is something to write, or some time has passed.
  void wait(int milliseconds) const { rings_->wait(milliseconds); }
  // What has come.
  Result<bool> write();
  // Of a snapshot: what there is goes to the file. The recording goes on.
  Result<bool> dump();
  // The end. Of a snapshot: with what there is.
  Result<bool> finish();

  uint64_t trace_bytes() const { return file_.trace_bytes(); }  // written

 private:
  Recording(RecordingSetup setup, std::unique_ptr<EventRings> rings, PerfFile file);

  RecordingSetup setup_;
  std::unique_ptr<EventRings> rings_;
  PerfFile file_;
  RecentRecords recent_;
};

}  // namespace tsomon::pt_live
