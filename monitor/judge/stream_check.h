// A verdict over an input of any length, while it is read.
//
// Purpose     What `tsomon check` does with streams: the online detector first, the exact analysis
//             only for what it flags.
// Context     While the whole input is still in the detector's history (the first million events),
//             flagged candidates wait and are analysed in the whole trace at the end, so that values
//             and orders count as in check_trace(). In longer inputs each is analysed in the
//             slice it spans; there recorded values decide less often. So it is where the events
//             have too many threads at once (CheckOptions::max_whole). What was put in order is
//             restored and analysed as it was, as long as all of it is in the history.
// Bounds      Candidates whose events have left the history, or that cost more than a fixed share of
//             the reading (events, undirected edges and work of the search), are not analysed: they
//             make the result incomplete unless a cycle of directed edges decides them. Once the
//             verdict is `definite` and enough is shown, further candidates are only counted.
// Stops       A stop (tso/support/work.h) ends judging; finish() then reports what was found until
//             then.
// Complexity  That of the detector, and what analyse_exactly() costs on the flagged candidates.
// Memory      The detector's; the findings with their events.
// Misses      Orders without time (TraceOrder::kThread), and without those of locks or
//             threads: use check_trace().
// Thread-safety: none.
#pragma once

#include <memory>
#include <string>

#include "monitor/events/event_source.h"
#include "monitor/judge/check.h"
#include "tso/support/work.h"

namespace tsomon {

class StreamCheck {
 public:
  static bool can_check(const CheckOptions& options) {
    return options.analysis.relation.order == TraceOrder::kIssue &&
           options.analysis.relation.lock_order && options.analysis.relation.thread_order;
  }

  // `symbols` must outlive the check and may grow between calls.
  StreamCheck(const Symbols& symbols, const CheckOptions& options);
  ~StreamCheck();
  StreamCheck(const StreamCheck&) = delete;
  StreamCheck& operator=(const StreamCheck&) = delete;

  // Nothing more is judged: finish() reports what has been found, and why that is not all.
  void end(WorkLimit limit);

  // The next events. Ordered by `lo`; those of a thread in program order. `origin`: what putting
  // them in order did to them; reports then count the lines of the input.
  // The input says that no unit ever begins: with nothing but single events there is no cycle, and
  // they are only counted. A unit all the same makes the result incomplete. For serializability
  // only; before the first add().
  void expect_no_units();
  void add(const EventBlock& block, const BlockOrigin& origin = {});

  // The input has ended. Threads and units are not counted. kEnvironment when the numbers of the
  // lines could not be kept.
  Result<CheckReport> finish(bool complete, uint64_t lost_events);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
