#include "monitor/judge/candidate_judge.h"

#include <algorithm>
#include <utility>

#include "monitor/events/read_ahead.h"
#include "monitor/judge/late_reads.h"
#include "monitor/judge/set_candidate.h"
#include "offline/check/orientation_search.h"
#include "tso/check/analysis_budget.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Of executions that may happen nothing is certain.
void nothing_is_definite(Analysis* analysis) {
  for (Violation& violation : analysis->findings) {
    violation.verdict = Verdict::kPossible;
  }
  analysis->more = {0, analysis->more.all()};
}

}  // namespace

uint64_t Judgement::undecided() const {
  if (!done() || failed()) {
    return UINT64_MAX;
  }
  return std::max<uint64_t>(result().undecided_components,
                            result().verdict() == Verdict::kInconclusive ? 1 : 0);
}

bool Judgement::is_open() const { return undecided() > 0 || result().all().possible > 0; }

Trace trace_of(DetectedSlice* slice) {
  Trace trace;
  static_cast<EventBlock&>(trace) = std::move(slice->events);
  trace.symbols.initial_zero = false;
  trace.symbols.initial_values = std::move(slice->initial);
  trace.pending_prefix = slice->pending_prefix;
  trace.lock_words = std::move(slice->lock_words);
  return trace;
}

std::vector<EventRange> ranges_of(std::span<const DetectedCandidate> candidates,
                                  const std::vector<uint64_t>* index) {
  std::vector<EventRange> ranges;
  for (const DetectedCandidate& candidate : candidates) {
    if (index != nullptr) {
      const std::vector<EventRange> own = ranges_of(candidate.units, *index);
      ranges.insert(ranges.end(), own.begin(), own.end());
      continue;
    }
    for (const DetectedUnit& unit : candidate.units) {
      ranges.push_back(
          {unit.thread, static_cast<uint32_t>(unit.first), static_cast<uint32_t>(unit.last)});
    }
  }
  return ranges;
}

DetectedCandidate all_before(const Trace& trace, uint64_t end) {
  DetectedCandidate all;
  for (const Event& event : trace.events) {
    while (all.units.size() <= event.thread) {
      const auto thread = static_cast<ThreadId>(all.units.size());
      all.units.push_back({thread, Interner::kNone, 0, end - 1, true, 0});
    }
  }
  return all;
}

Judgement CandidateJudge::judge(std::span<const DetectedCandidate> candidates,
                                DetectedSlice&& slice, uint64_t around, const CandidateShare& share,
                                uint64_t input, bool values, unsigned jobs) const {
  Judgement judgement;
  const bool some_executions = slice.some_executions;
  AnalysisOptions options = analysis_;
  options.property = searched_as(property_);
  options.threads = jobs != 0 ? jobs : usable_processors();
  options.values = options.values && values && slice.all_stores;
  judgement.slice = trace_of(&slice);
  judgement.index = std::move(slice.index);
  share.limit(&options);
  if (around == 0 && options.values && judgement.slice.has_read_values()) {
    options.max_total_work = std::min(options.max_total_work, kFirstLookWork);
  }
  options.only = ranges_of(candidates, &judgement.index);
  const WorkSpent spent = measured(kCandidatesBudget.of(input), [&] {
    if (property_ == Property::kAtomicSets) {
      judgement.analysis =
          analyse_set_candidates(symbols_, candidates, options, &judgement.slice, &judgement.index);
      (*judgement.analysis)->notes = {};  // what is not certain the detector has counted
    } else {
      const auto analyse = [&](const Trace& trace) { return analyse_exactly(trace, options); };
      judgement.analysis = analyse(judgement.slice);
      if (options.values) {
        judgement.analysis = with_late_reads(std::move(*judgement.analysis), judgement.slice,
                                             slice.late_reads, analyse);
      }
    }
  });
  judgement.work = spent.work;
  judgement.over = spent.over;
  if (some_executions && !judgement.failed()) {
    nothing_is_definite(&**judgement.analysis);
  }
  return judgement;
}

bool CandidateJudge::more_may_say(const Judgement& judgement, uint64_t around) const {
  return judgement.is_open() && !judgement.over && analysis_.values &&
         around != Detector::kAround.back() && (around == 0 || judgement.slice.has_read_values());
}

}  // namespace tsomon
