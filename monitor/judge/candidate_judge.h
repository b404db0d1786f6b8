// One look at a candidate: a flagged group of units, analysed exactly in the slice of the input around it.
//
// Purpose     The one place that knows how candidates are judged, for inputs (stream_check.h) and while a program runs
//             (watch.h): what is taken for known at the edges of a slice, which bounds a look has, when more of the
//             input around the candidate may still change the answer. Who calls it decides when to look, with how
//             much around it (Detector::kAround), and what all candidates together may cost (candidate_bounds.h).
// Values      A slice does not begin where the program began: memory holds what the history knows of it
//             (EventHistory), and recorded values count only where no store can be missing that may have been in a
//             buffer.
// Verdicts    What may be violated, or was not decided, in a slice may be decided by what is around it; what is clean
//             or definitely violated stays so. Of a slice of which only some executions could be looked at nothing is
//             definite.
// Complexity  That of analyse_exactly() or analyse_set_candidates() on the slice, within the share.
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "monitor/judge/candidate_bounds.h"
#include "online/detector/detector.h"
#include "tso/check/analysis.h"
#include "tso/model/property.h"
#include "tso/model/trace.h"
#include "tso/order/event_ranges.h"
#include "tso/support/result.h"

namespace tsomon {

// What a look has shown.
struct Judgement {
  Trace slice;                               // without the symbols' names
  std::vector<uint64_t> index;               // of its events, in the input
  std::optional<Result<Analysis>> analysis;  // none: there was no look
  uint64_t work = 0;                         // all that was done
  bool over = false;                         // a bound on it was met

  bool done() const { return analysis.has_value(); }
  bool failed() const { return analysis && !*analysis; }
  const Analysis& result() const { return **analysis; }
  // Groups of units that were not decided; sets: what is not certain the detector has counted.
  uint64_t undecided() const;
  // Something may be violated, or was not decided.
  bool is_open() const;
  // It begins and ends where the slice does.
  bool is_of(const DetectedSlice& slice) const {
    return index.size() == slice.index.size() && !index.empty() &&
           index.front() == slice.index.front() && index.back() == slice.index.back();
  }
};

class CandidateJudge {
 public:
  // `symbols` must outlive the judge. Of `analysis` the bounds are those of one look.
  CandidateJudge(const Symbols& symbols, Property property, const AnalysisOptions& analysis)
      : symbols_(symbols), property_(property), analysis_(analysis) {}

  // A look with `around` events on either side at candidates that lie in the slice. `values`: recorded values count.
  // `input`: events of the input so far. `jobs`: threads; 0: as many as there are processors and work for.
  Judgement judge(std::span<const DetectedCandidate> candidates, DetectedSlice&& slice,
                  uint64_t around, const CandidateShare& share, uint64_t input, bool values,
                  unsigned jobs) const;
  // Whether a look with more around may say more.
  bool more_may_say(const Judgement& judgement, uint64_t around) const;
  // Of two looks the one that stands: with more around it may have become too large to be decided.
  static bool stands_beside(const Judgement& before, const Judgement& now) {
    return before.done() && !before.failed() && !now.failed() &&
           now.undecided() > before.undecided();
  }

 private:
  const Symbols& symbols_;
  Property property_;
  AnalysisOptions analysis_;
};

// The slice as a trace of its own.
Trace trace_of(DetectedSlice* slice);

// The events of the candidates' units, in places of a slice with these events (nullptr: of the input itself).
std::vector<EventRange> ranges_of(std::span<const DetectedCandidate> candidates,
                                  const std::vector<uint64_t>* index);

// A candidate of everything before that event.
DetectedCandidate all_before(const Trace& trace, uint64_t end);

}  // namespace tsomon
