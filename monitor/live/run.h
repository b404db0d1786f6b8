// Runs a program with the detector beside it.
//
// What it does  Starts the program with the probe writing a live capture (decoders/capture/live.h)
//               into a pipe, reads it in this process while the program runs, and reports each
//               violation once, as it happens. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to the
//               program.
// Processes     The first recorded process is watched, its children are not.
// Speed         When the program outruns the detector, the probe waits (on_full=block), or drops
//               and counts (on_full=drop in TSOMON_OPTIONS): then the result is incomplete.
// Cost          What watching costs the program is measured (run_cost.h).
// Delay         A finding comes some tens of milliseconds after the event that closes its cycle;
//               when a thread was silent without a lock or a time stamp, up to a quarter of a
//               second.
// Thread-safety: none; forwards signals of the whole process while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/events/event_follower.h"
#include "monitor/judge/watch.h"
#include "monitor/live/run_cost.h"

namespace tsomon {

struct RunOptions {
  std::vector<WatchOptions> watches = {WatchOptions()};  // one for each property
  uint32_t round_milliseconds = 20;
  // A file or a FIFO for what the program records, as a capture; empty: none. What is there and is
  // no capture is not overwritten.
  std::string save;
  // Is called with the process that is going to execute the program; false: it does not.
  std::function<bool(pid_t)> before_start;
  EventFollower* follower = nullptr;  // is told of all events that are judged
  // Is told what watching costs, once, where that is much; on a thread of its own.
  std::function<void(const RunCost&)> on_cost;
  uint64_t object_bytes = 0;  // the probe's option objects=, unless TSOMON_OPTIONS has it
};

struct RunResult {
  int status =
      0;  // of the program, as RecordResult::status; kRecordFailed, kRecordUsage: see problem
  std::string problem;  // for the user; the program was not watched
  bool saved = true;    // false: RunOptions::save is not whole; a warning says why
  std::vector<std::string> warnings;
  std::vector<WatchSummary> summaries;  // as RunOptions::watches
};

// `command` is not empty; command[0] is looked up in PATH.
RunResult run(const std::vector<std::string>& command, const RunOptions& options,
              const Watch::Callback& report);

}  // namespace tsomon
