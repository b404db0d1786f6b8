// Events in, findings out, while the events arrive: the detector, its candidates judged, in words.
//
// Purpose     What `tsomon run`, `tsomon attach` and embedded monitors report. The caller orders
//             the events (EventMerge, StreamMerger) and owns the symbols, which may grow between
//             calls.
// Findings    A cycle of certain orders is reported by the event that closes it. One through a
//             lock's own location is reported when its units are over, as a cycle through data if
//             they have one (lock_cycles.h). A candidate of units that only some executions violate is
//             judged by analyse_exactly() when it can change no more, and what is not definite then
//             once more, when some thousand events have come that may tell more, or none comes.
//             Findings with the same labels and source locations are reported once and counted
//             (WatchSummary::counts, at any time).
// Verdict     As `tsomon check`: kInconclusive when nothing was found and something was missing:
//             late or lost events, candidates that could not be judged; or when there was nothing to
//             find anything in (basis.h).
// Stops       Once a stop was asked for (tso/support/work.h), or the detector's work exceeds
//             kDetectionBudget of the events so far, nothing more is judged: what is added is
//             counted, and the summary says so.
// Complexity  That of Detector; a candidate costs what analyse_exactly() costs within
//             WatchOptions::analysis, all candidates together what monitor/judge/candidate_bounds.h
//             allows; those beyond that are not judged.
// Cancels     Where units may be cancelled findings wait for the ends of units (held_units.h).
// Misses      What Detector misses. The order of findings is not that of their events.
// Thread-safety: none; the callback runs inside add() and finish() and must not call the watch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/basis.h"
#include "monitor/findings/happened_deadlock.h"
#include "monitor/findings/reported_finding.h"
#include "online/detector/detector.h"
#include "online/stream/event_merge.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"
#include "tso/model/trace.h"
#include "tso/support/work.h"

namespace tsomon {

struct WatchOptions {
  WatchOptions();
  // What is asked; `detector.relation` says what is ordered. Robustness: the nodes of cycles are
  // single events, and so are those of findings.
  void ask(Property property, SetChoice sets = SetChoice::kAuto);
  Property property() const;
  DetectorOptions detector;
  AnalysisOptions analysis;  // of candidates
  // Its `objects` are the watch's own.
  ReportNames names;
  // What would rule a finding out, in one line; asked for those that are reported. May be empty.
  std::function<std::string(const Finding&, const Symbols&, const ReportNames&, Property)> repair;
  BasisSource source = BasisSource::kProbe;
};

// A finding that was reported, and how often it occurred so far.
struct FindingCount {
  uint64_t number = 0;  // as ReportedFinding's
  Verdict verdict = Verdict::kPossible;
  std::string fingerprint;
  uint64_t count = 0;
  uint64_t first = 0;  // where the first and the last one begin: events
  uint64_t last = 0;

  void add(const Repeats& more);
};

struct WatchSummary {
  Property property = Property::kSerializability;
  Violations found;                // different ones
  Notes notes;                     // why it is not complete
  std::optional<WorkLimit> ended;  // not all was judged, because of a stop or a bound on work
  uint64_t events = 0;
  uint32_t threads = 0;
  uint64_t units = 0;
  std::vector<FindingCount> counts;  // of those, by their numbers
  uint64_t occurrences = 0;          // all, those that are not in `counts` included
  uint64_t candidates = 0;           // that had to be judged
  uint64_t unjudged = 0;             // ... and could not be, or not whole
  uint64_t losses = 0;               // places where events are missing
  uint64_t lost_events = 0;          // as far as their number is known
  uint64_t taken_apart = 0;          // units, as HeldUnits has it
  uint64_t surprises = 0;  // units that were cancelled without expect_cancels(): nothing is
                           // definite then
  DetectorStatistics detector;
  HappenedDeadlock deadlock;  // where nothing is missing, when all was added
  Basis basis;                // its selection is filled in by who knows it

  bool complete() const { return notes.complete(); }
  // Why finding nothing means nothing, if nothing was found and nothing was missing.
  std::vector<Shortfall> shortfalls() const {
    return verdict_of(found, complete()) == Verdict::kClean
               ? tsomon::shortfalls(basis, property != Property::kRobustness)
               : std::vector<Shortfall>();
  }
  Verdict verdict() const {
    return shortfalls().empty() ? verdict_of(found, complete()) : Verdict::kInconclusive;
  }
};

class Watch {
 public:
  using Callback = std::function<void(const ReportedFinding&)>;

  Watch(const Symbols& symbols, WatchOptions options, Callback callback);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Units may be cancelled. To be called before the first event; again: nothing.
  void expect_cancels();
  void add(const EventBlock& block);
  void lost(const EventLoss& loss);
  // Something is missing that is not an event of one place.
  void incomplete();
  // Nothing has come for a while: what was put off until more is known is judged by what is.
  void idle();
  void finish();

  WatchSummary summary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
