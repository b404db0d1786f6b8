// Watches a running program in slices, and judges each.
//
// Plan        When, and what of it: plan.h; or each time when a trigger comes (trigger.h), but not more often than the share
//             of time asked for. What a slice takes to be judged is time that is not watched: with a share of 1
//             they follow one another as fast as that allows. The share that was reached is told.
// Cost        Of the process: its events, each of which takes some nanoseconds (kNanosecondsOfEvent,
//             docs/measurements/recording.md), but no more than the processor time that it used meanwhile. Of
//             this one: its processor time while it judges. Not measured are the caches that both take from the program.
// Memory      That of one slice and its judgement, at a time; judging has a bound that follows from the slice's size (tso/support/work.h),
//             and that of the options.
// Sums        Slices that were planned were recorded, or dropped for a reason. Which are dropped is decided before anything of them is
//             recorded; the time that such a slice would have taken passes unwatched.
// Trust       The program may record anything: slice_judge.h.
// Errors      As record_slice(); once something was watched a program that ends is no error. As Trigger, TwinFunctions.
// Stops       A stop (tso/support/work.h) ends the slice that is recorded; it is judged.
// Thread-safety: none.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
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
  uint64_t most_bytes = 0;  // of a slice's records, from which on it ends; 0: as they come
  uint64_t judging_bytes = UINT64_MAX;  // of memory, for judging one
  // If there is one: why the slice that is due is dropped; empty: it is not.
  std::function<std::string()> drop;
  // If there is one, is called with each slice in which somebody took part before it is judged: its capture, and how many
  // bytes it has. Also with what there is of one in which the program ended.
  std::function<void(int, uint64_t)> recorded;
  // Between slices one begins when a function of this pattern is called (as TriggerName's), of kTrigger; but for `rest` after
  // that was seen, there or in another slice. `alarm` is called then, once the slice was judged.
  std::string alarm_functions;  // empty: none
  std::chrono::microseconds alarm_rest{0};
  std::function<void()> alarm;
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
  uint64_t without_threads = 0;             // slices in which nobody took part
  uint64_t without_accesses = 0;            // ... in which no access is seen of those who did
  std::string ended;                        // why before its time; empty: it was not
  uint64_t planned = 0;                     // slices whose moment came: recorded, or
  std::map<std::string, uint64_t> dropped;  // ... not, by reason
  std::chrono::microseconds gaps{0};        // for which these were planned
  uint64_t shortened = 0;                   // slices that ended because of most_bytes
  uint64_t delayed = 0;  // slices whose moment had passed while another one was judged
  std::chrono::microseconds delay{0};  // ... for so long

  uint64_t slices() const;
  // Of another time, but for why it ended.
  void add(const SamplingSummary& more);
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
  uint64_t unjudged_events = 0;     // that are in it, but a bound ended judging before
  CheckedProperties& checked;
};

Result<SamplingSummary> watch_slices(const SamplingOptions& options,
                                     const std::function<void(const JudgedSlice&)>& judged);

}  // namespace tsomon
