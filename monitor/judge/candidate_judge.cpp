#include "monitor/judge/candidate_judge.h"

#include <algorithm>
#include <utility>

#include "monitor/events/read_ahead.h"
#include "monitor/judge/set_window.h"
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

uint64_t Look::undecided() const {
  if (!done() || failed()) {
    return UINT64_MAX;
  }
  return std::max<uint64_t>(result().undecided_parts,
                            result().verdict() == Verdict::kInconclusive ? 1 : 0);
}

bool Look::is_open() const { return undecided() > 0 || result().all().possible > 0; }

Trace trace_of(DetectedStretch* slice) {
  Trace trace;
  static_cast<EventBlock&>(trace) = std::move(slice->events);
  trace.symbols.initial_zero = false;
  trace.symbols.initial_values = std::move(slice->initial);
  trace.in_front = slice->in_front;
  return trace;
}

std::vector<EventRange> ranges_of(std::span<const DetectedWindow> windows,
                                  const std::vector<uint64_t>* index) {
  std::vector<EventRange> ranges;
  for (const DetectedWindow& window : windows) {
    if (index != nullptr) {
      const std::vector<EventRange> own = ranges_of(window.units, *index);
      ranges.insert(ranges.end(), own.begin(), own.end());
      continue;
    }
    for (const DetectedUnit& unit : window.units) {
      ranges.push_back(
          {unit.thread, static_cast<uint32_t>(unit.first), static_cast<uint32_t>(unit.last)});
    }
  }
  return ranges;
}

DetectedWindow all_before(const Trace& trace, uint64_t end) {
  DetectedWindow all;
  for (const Event& event : trace.events) {
    while (all.units.size() <= event.thread) {
      const auto thread = static_cast<ThreadId>(all.units.size());
      all.units.push_back({thread, Interner::kNone, 0, end - 1, true, 0});
    }
  }
  return all;
}

Look CandidateJudge::look(std::span<const DetectedWindow> windows, DetectedStretch&& slice,
                          uint64_t around, const WindowShare& share, uint64_t input, bool values,
                          unsigned jobs) const {
  Look look;
  const bool some_executions = slice.some_executions;
  AnalysisOptions options = analysis_;
  options.property = searched_as(property_);
  options.threads = jobs != 0 ? jobs : usable_processors();
  options.values = options.values && values && slice.all_stores;
  look.slice = trace_of(&slice);
  look.index = std::move(slice.index);
  share.limit(&options);
  if (around == 0 && options.values && look.slice.has_read_values()) {
    options.max_total_work = std::min(options.max_total_work, kFirstLookWork);
  }
  options.only = ranges_of(windows, &look.index);
  const WorkSpent spent = measured(kWindowsBudget.of(input), [&] {
    if (property_ == Property::kAtomicSets) {
      look.analysis = analyse_set_windows(symbols_, windows, options, &look.slice, &look.index);
      (*look.analysis)->notes = {};  // what is not certain the detector has counted
    } else {
      look.analysis = analyse_exactly(look.slice, options);
    }
  });
  look.work = spent.work;
  look.over = spent.over;
  if (some_executions && !look.failed()) {
    nothing_is_definite(&**look.analysis);
  }
  return look;
}

bool CandidateJudge::more_may_say(const Look& look, uint64_t around) const {
  return look.is_open() && !look.over && analysis_.values && around != Detector::kAround.back() &&
         (around == 0 || look.slice.has_read_values());
}

}  // namespace tsomon
