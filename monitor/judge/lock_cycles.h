// Cycles through a lock's own location, until they can be shown by what the lock guards.
//
// Purpose     The detector reports a cycle by the event that closes it. Where a unit takes a lock
//             twice that is the second acquisition: the accesses that conflict come only after it.
//             Such a cycle waits until its units are over; then a cycle of the same units through
//             data is looked for, by the rule that `tsomon check` goes by
//             (shortest_cycle_of_data()).
// Bounds      At most kMost cycles wait, each for at most kPatience events. Different cycles alone
//             are reported by the detector, so there are never many.
// Complexity  follow(): O(events of the block) while a cycle waits, else O(1). cycle_of_data():
// that
//             of analyse() with certain orders alone.
// Misses      Cycles of data that need units which are not on the cycle of the lock.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "monitor/findings/event_count.h"
#include "online/detector/detector.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon {

class LockCycles {
 public:
  static constexpr size_t kMost = 256;
  static constexpr uint64_t kPatience = Detector::kAround.back();  // events
  static constexpr size_t kMostEvents = 1000;                      // of units that are looked at

  // Whether the cycle goes through the location of a lock.
  static bool is_one(const DetectedCycle& cycle);

  void add(DetectedCycle cycle);
  // Events that the detector has seen, in which add() may have been called. `before`: of all events
  // in front of them.
  void follow(const EventBlock& block, uint64_t first_index, const EventCount& before);
  // A cycle that need not wait any more when so many events have come; UINT64_MAX: any.
  std::optional<DetectedCycle> take(uint64_t events);

 private:
  struct Waiting {
    DetectedCycle cycle;
    uint64_t closed = 0;         // the latest event behind its edges
    std::vector<ThreadId> open;  // threads whose unit on the cycle is not over
  };
  std::deque<Waiting> waiting_;
};

// The shortest cycle of certain orders through data, among the units of `cycle` and what their
// threads did between them, in positions of `slice`; empty: there is none, or there are too many
// events. `index`: of the events of `slice`, in the input; it holds these units as far as they
// have come.
std::vector<CycleEdge> cycle_of_data(const DetectedCycle& cycle, const Trace& slice,
                                     const std::vector<uint64_t>& index,
                                     const RelationOptions& options);

}  // namespace tsomon
