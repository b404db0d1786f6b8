// Judges what waits in a fleet.
//
// How         Each piece of work is a command of tsomon in a process of its own, within bounds (monitor/service/idle_process.h): what it
//             crashes on, or takes all the memory for, ends that alone. Its lease is extended while it runs.
// Order       The verdict is stored, with its findings, and then the work is gone: whoever ends in between leaves it for
//             another, and the first verdict stays.
// Failures    A crash, a bound that was met, a worker that did not come back: it is tried again, by another worker if there is one,
//             most_tries times in all; then it is parked with the reason. Missing chunks park it at once: whoever
//             submitted it sends them again.
// Away        A server that does not answer is asked again, later each time, kLongestPause at most; with `once` until kAwayWithOnce
//             is over.
// Parts       Work with parts (work.h) waits, not long at a time, until each of them has a verdict.
// Files       Temporary ones without a name, which go with the process.
// Errors      Told; run() ends with one only with `once`.
// Thread-safety: one thread for each object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/fleet/contents.h"
#include "monitor/fleet/fleet.h"
#include "monitor/process/descriptor.h"
#include "monitor/service/idle_process.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

struct WorkerOptions {
  std::string program;  // tsomon
  std::string name;     // of this worker; no other one has it
  service::IdleBounds bounds;
  unsigned jobs = 1;
  std::chrono::milliseconds lease{60'000};
  uint64_t most_tries = 3;
  bool once = false;  // end when nothing waits and nobody works
  std::function<void(const std::string&)> tell;
};

struct WorkerCounters {
  uint64_t judged = 0;
  uint64_t failed = 0;  // tries
  uint64_t parked = 0;
  std::chrono::microseconds used{0};  // processor time of the commands
};

class Worker {
 public:
  static constexpr std::chrono::milliseconds kLongestPause{5000};
  static constexpr std::chrono::seconds kAwayWithOnce{60};

  Worker(Fleet& fleet, WorkerOptions options)
      : fleet_(fleet), contents_(fleet), options_(std::move(options)) {}
  // Until `stopped` says so, which is asked many times a second.
  Result<void> run(const std::function<bool()>& stopped);
  const WorkerCounters& counters() const { return counters_; }

 private:
  using Stopped = std::function<bool()>;

  Result<bool> is_over();
  Result<void> do_one(const Taken& taken, const Stopped& stopped);
  using Names = std::vector<std::pair<std::string, std::string>>;
  // The answers of the parts of a whole.
  struct Answers {
    std::vector<Descriptor> files;
    Names names;
    std::vector<std::string> paths() const;
  };

  Result<void> judge(const Taken& taken, const Answers& answers, const Stopped& stopped);
  Result<void> merge(const Taken& taken, const Answers& answers, const Stopped& stopped);
  Result<void> put_together(const Taken& taken, const Stopped& stopped);
  Result<std::string> output_of(const Verdict& verdict);
  Result<void> run_command(const Taken& taken, const std::vector<std::string>& command,
                           const Names& names, const Stopped& stopped);
  Result<void> store(const Taken& taken, const std::string& output, int exit_status);
  Result<void> fail_try(const Taken& taken, const std::string& reason);
  Result<void> park(const Taken& taken, Parking how, const std::string& reason);
  // Again until it is done, or stopped.
  Result<void> insist(const std::function<Result<void>()>& act, const Stopped& stopped);

  Fleet& fleet_;
  ContentFetcher contents_;
  const WorkerOptions options_;
  WorkerCounters counters_;
};

// The findings in what a command wrote, for the fleet.
std::vector<Sighting> sightings_of(const Work& work, const std::string& output);

}  // namespace tsomon::fleet
