// The detector with a bound on its work: when that is reached, it looks on at one execution alone.
//
// Purpose     Units that no fence makes visible are in an open order with all that follow, and finding
//             every candidate costs time that is quadratic in them. Most programs that go wrong show
//             it in a much simpler way: in the execution in which every store commits at once,
//             which is one of those that the input allows as far as intervals and values do not
//             contradict it.
// Simple      Once the work of the detector has exceeded a bound (tso/check/analysis_budget.h) it
//             is replaced by others with the policy kSc, one for each portion of some thousand
//             events, which start with what is in the history. Recordings say of many events of a
//             thread only that they lie in one interval: they are spread over it, or those of one
//             thread would stand together and nothing overlap. What is placed behind the events
//             that have come waits for these, some ten thousand events at most. The units of each cycle that these
//             close are a candidate like any other, to be judged by the exact analysis: it may find
//             that they are not violated. What is no such cycle is not seen: complete() is false
//             from there on. Under kRobustness, where that execution shows nothing, only the
//             history goes on. With other policies nothing changes but that the work is counted.
// Callbacks   As Detector's. Candidates of cycles come after add() of the events that closed them,
//             are not `directed`, and hold the events so far of their units.
// Complexity  Linear in the events after the bound.
// Misses      Of what comes after the bound, whatever is no cycle of that execution, and cycles
//             across portions.
// Thread-safety: as Detector's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "online/detector/detector.h"
#include "online/stream/history.h"
#include "tso/check/analysis_budget.h"
#include "tso/support/work.h"

namespace tsomon {

// What a report says of simple(), as a reason why it is incomplete.
inline constexpr const char* kOneExecution =
    "too much is in no certain order, for want of fences: of what came later only the execution "
    "was looked at in which every store commits at once";
inline constexpr const char* kNoExecution =
    "too much is in no certain order, for want of fences: what came later was not looked at";

class BoundedDetector {
 public:
  BoundedDetector(const Symbols& symbols, const DetectorOptions& options,
                  DetectorCallbacks callbacks, WorkBudget mixed = kMixedBudget);
  BoundedDetector(const BoundedDetector&) = delete;
  BoundedDetector& operator=(const BoundedDetector&) = delete;

  // Throws WorkEnded when a stop was asked for.
  void add(const EventBlock& block, uint64_t first_index);
  void lost(ThreadId thread);
  void finish();
  // As the detector's. Once it is simple, of the stores that may have been in a buffer the latest
  // kMostPendingPrefix: without fences nearly all of the input may have been.
  DetectedSlice slice(uint64_t first, uint64_t last, uint64_t around = 0,
                      bool all_behind = false) const;
  static constexpr uint32_t kMostPendingPrefix = 64;
  // For those who judge the candidates. The open orders of one that a simple detector flags are
  // quadratic in its events: whether one of so many is to be judged, which it counts, and whether
  // with so many more around it. Others always.
  bool affords(uint64_t events);
  bool affords_around(uint64_t around) const { return !simple_ || around <= kMostAround; }
  // So much work was done to judge one. Too much of it, and it is simple from the next events on.
  void judged(uint64_t work) { judging_ += work; }

  bool complete() const { return !simple_ && detector_.complete(); }
  // It looks at one execution alone. It will not take that back.
  bool simple() const { return simple_; }
  // It has done more than any input of so many events should ask for, and is to be used no more.
  bool exhausted() const;
  // Simple from now on, if it ever can be. Not inside a callback.
  void simplify();
  // Of gaps those before as well.
  DetectorStatistics statistics() const;
  // As the detector's; what was reported to on_cycle counts.
  const std::vector<uint64_t>& cycle_counts() const;

 private:
  static constexpr uint64_t kMostAround = 256;

  void simplify_if_dear();
  void report_cycles();
  void spread(const EventBlock& block, size_t from, uint64_t first_index);
  void place_waiting();
  void look_at_spread(bool all);
  void detect_in_spread(size_t from, size_t to);  // of what waits
  void add_cycle_of_spread(const DetectedCycle& cycle);

  const Symbols& symbols_;
  DetectorOptions options_;
  DetectorCallbacks callbacks_;
  WorkBudget mixed_;
  uint64_t events_ = 0;
  uint64_t pairs_ = 0;    // of events in candidates that were to be judged
  uint64_t judging_ = 0;  // work
  uint64_t end_ = 0;      // index behind the last event
  bool simple_ = false;
  uint64_t work_before_ = 0;  // it was simple
  DetectorStatistics before_;
  std::vector<uint64_t> counts_before_;
  std::vector<DetectedCycle> closed_;  // since the last call of add()
  WorkMeter meter_;
  Detector detector_;

  // Simple: what is to be spread yet, and of what has been the places in the input.
  struct Waiting {
    Event event;
    int64_t hi = 0;
    uint64_t index = 0;
  };
  std::optional<EventHistory> history_;
  std::vector<Waiting> waiting_;                     // the first of them placed, and in order
  size_t ahead_ = 0;                                 // so many
  int64_t arrived_ = INT64_MIN;                      // where the latest event begins
  std::unordered_map<ThreadId, int64_t> spread_to_;  // the latest of each thread, behind that
  std::deque<uint64_t> places_;                      // of the latest events that were spread
  uint64_t spread_events_ = 0;
};

}  // namespace tsomon
