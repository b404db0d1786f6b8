// Watches a running program in slices, and judges each.
//
// Plan        When, and what of it: plan.h; or each time when a trigger comes (trigger.h), but not more often than the share
//             of time asked for. What a slice takes to be judged is time that is not watched: with a share of 1
//             they follow one another as fast as that allows. The share that was reached is told.
// Cost        Of the process: its events, each of which takes some nanoseconds (kNanosecondsOfEvent,
//             docs/measurements/recording.md), but no more than the processor time that it used meanwhile. Of
//             this one: its processor time while it judges. Not measured are the caches that both take from the program.
// Memory      That of one slice and its judgement, at a time.
// Trust       The program may record anything: slice_judge.h.
// Errors      As record_slice(); once something was watched a program that ends is no error. As Trigger, TwinFunctions.
// Stops       A stop (tso/support/work.h) ends the slice that is recorded; it is judged.
// Thread-safety: none.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "monitor/check/check_input.h"
#include "monitor/process/process_access.h"
#include "monitor/slices/plan.h"
#include "monitor/slices/slice_client.h"
#include "monitor/slices/trigger.h"

namespace tsomon {

inline constexpr double kNanosecondsOfEvent = 10;

struct SamplingSummary;

struct SamplingOptions {
  pid_t pid = 0;
  std::string folder;  // of the socket
  PlanOptions plan;
  std::vector<std::string> labels;      // of units that focus is on: patterns; empty: all
  std::optional<TriggerName> trigger;   // the plan's kinds are not looked at then
  std::chrono::microseconds time{0};    // in all; 0: until a stop, or the program's end
  std::vector<CheckOptions> questions;  // at least one
  // Who connects and opens the process's files, and is there as long as watching goes on; none: this process itself, and
  // names are looked for by their files' paths.
  attach::ProcessAccess* access = nullptr;
  // If there is one, is called after each slice and while one is waited for, several times a second, with what came so far.
  std::function<void(const SamplingSummary&)> going_on;
};

struct SamplingSummary {
  struct Kind {
    uint64_t slices = 0;
    std::chrono::microseconds watched{0};
  };
  std::array<Kind, kSliceKinds> kinds;
  std::chrono::microseconds elapsed{0};
  std::chrono::microseconds used{0};     // processor time of the process
  std::chrono::microseconds cost{0};     // ... of it for being watched
  std::chrono::microseconds judging{0};  // ... of this process
  uint64_t cut_units = 0;
  uint64_t without_threads = 0;  // slices in which nobody took part
  std::string ended;             // why before its time; empty: it was not

  uint64_t slices() const;
  const Kind& everything() const { return kinds[static_cast<size_t>(SliceKind::kAll)]; }
  // Of the time, in which everything was watched.
  double share() const {
    return elapsed.count() == 0 ? 0
                                : static_cast<double>(everything().watched.count()) /
                                      static_cast<double>(elapsed.count());
  }
};

struct JudgedSlice {
  uint64_t number = 0;  // from 1 on
  SliceKind kind = SliceKind::kAll;
  std::chrono::microseconds at{0};  // since watching began
  int file = -1;                    // its capture, a regular file; closed when `judged` returns
  CheckedProperties& checked;
};

Result<SamplingSummary> watch_slices(const SamplingOptions& options,
                                     const std::function<void(const JudgedSlice&)>& judged);

}  // namespace tsomon
