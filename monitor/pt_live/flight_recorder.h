// The last part of a process's trace, written when something was found: a recording of snapshots
// (recording.h) on a thread of its own.
//
// Contract    dump() writes what there is and ends the recording; later calls do nothing. Without
//             one, stop() removes the file: there was nothing to look at.
// Cost        What the processor needs for its trace; the thread wakes up ten times a second, and
//             when a ring of records is half full.
// Misses      What the areas no longer held when the violation was found: `trace_bytes` of the
//             request says how large they are.
// Thread-safety: dump() and stop() from any thread. The recorder's own has all signals blocked.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <sys/types.h>

#include "monitor/pt_live/recording.h"
#include "tso/support/result.h"

namespace tsomon::pt_live {

class FlightRecorder {
 public:
  // As Recording::begin() has it; the setup is one for snapshots.
  static Result<std::unique_ptr<FlightRecorder>> start(const RecordingSetup& setup,
                                                       const std::string& output, pid_t pid,
                                                       bool running);
  ~FlightRecorder() { static_cast<void>(stop()); }
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void dump();
  // Whether the file is there; why it could not be written.
  Result<bool> stop();

 private:
  FlightRecorder(std::unique_ptr<Recording> recording, std::string output)
      : recording_(std::move(recording)), output_(std::move(output)) {}
  void follow();

  std::mutex stopping_;  // whoever has it joins the thread; taken before the other one
  std::mutex mutex_;     // guards recording_ but for wait(), and result_
  std::unique_ptr<Recording> recording_;
  std::string output_;
  Result<bool> result_ = false;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace tsomon::pt_live
