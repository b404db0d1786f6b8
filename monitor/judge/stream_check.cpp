#include "monitor/judge/stream_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/events/read_ahead.h"
#include "monitor/judge/candidate_bounds.h"
#include "monitor/judge/candidate_group.h"
#include "monitor/judge/candidate_judge.h"
#include "monitor/judge/certain_cycles.h"
#include "monitor/judge/check_parts.h"
#include "monitor/judge/cycle_finding.h"
#include "monitor/judge/group_share.h"
#include "monitor/judge/input_order.h"
#include "monitor/judge/losses.h"
#include "monitor/judge/threads_at_once.h"
#include "offline/check/crossing_units.h"
#include "online/detector/bounded_detector.h"
#include "online/stream/lock_words.h"
#include "tso/check/analysis_budget.h"
#include "tso/model/hand_over.h"
#include "tso/model/lifetimes.h"
#include "tso/support/ordered_work.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Of an input in which something certain was found: candidates that are searched for more.
constexpr uint64_t kMostSearched = 4096;
constexpr uint64_t kMostExact = 100'000;  // events that are searched, of which much is open

// Slices are small, and which of their violations are alike is looked at afterwards.
AnalysisOptions each_told(AnalysisOptions options) {
  options.told = options.told == Told::kFirst ? Told::kFirst : Told::kAll;
  return options;
}

}  // namespace

class StreamCheck::Impl {
 public:
  Impl(const Symbols& symbols, const CheckOptions& options)
      : symbols_(symbols),
        options_(options),
        judge_(symbols, options.property, each_told(options.analysis)),
        kinds_(options.analysis.told, symbols),
        fences_(options.analysis),
        cycles_(options_, symbols, &kinds_, &report_),
        share_(options),
        detector_(symbols, detector_options(), callbacks()) {
    report_.property = options.property;
    report_.semantics = options.analysis.relation.semantics;
  }

  void expect_no_units() {
    no_units_ = options_.property == Property::kSerializability ||
                options_.property == Property::kScSerializability;
  }

  void add(const EventBlock& block, const BlockOrigin& origin) {
    const EventBlock* events = &block;
    if (options_.property != Property::kAtomicSets) {
      events = &lifetimes_.follow(block, &renamed_);
    }
    unless_ended([&] { take(*events, origin); });
  }

  void end(WorkLimit limit) { ended_ = limit; }

  Result<CheckReport> finish(bool complete, uint64_t lost_events) {
    trace_complete_ = complete;
    unless_ended([&] { judge_rest(); });
    // What is found is reported, whoever asks for a stop now.
    const WorkPause outside;
    return report(complete, lost_events);
  }

 private:
  // A stop leaves what has been found so far. The detector is not asked to go on then.
  template <typename Function>
  void unless_ended(const Function& function) {
    if (ended_) {
      return;
    }
    try {
      function();
    } catch (const WorkEnded& end) {
      ended_ = end.limit();
    }
  }

  void take(const EventBlock& block, const BlockOrigin& origin) {
    if (no_units_) {
      count(block);
      return;
    }
    if (everything_ && report_.events + block.events.size() > options_.history_events) {
      judge_everything(judged_up_to());
      judged_whole_ = false;  // the detector goes on with what it missed
      const bool by_candidates = !std::exchange(everything_, false);
      order_.forget_times();
      if (too_dear_ && !by_candidates) {
        detector_.simplify();
      }
    }
    if (everything_ && options_.property != Property::kAtomicSets) {
      threads_.add(block);
      if ((report_.events + block.events.size()) * threads_.most() > options_.max_whole) {
        everything_ = false;
        order_.forget_times();
      }
    }
    kept_whole_ = kept_whole_ && report_.events + block.events.size() <= options_.history_events &&
                  origin.lines.empty();
    if (!origin.lines.empty()) {
      remember(origin);
    }
    share_.add(block);
    detector_.add(block, report_.events);
    if (detector_.simple()) {
      everything_ = false;
      order_.forget_times();
    }
    report_.events += block.events.size();
    if (options_.progress != nullptr) {
      options_.progress->events += block.events.size();
    }
    if (!(kept_whole_ && detector_.simple())) {
      judge_pending(judged_up_to());
    }
    if (detector_.exhausted()) {
      ended_ = WorkLimit::kWork;
    }
  }

  void judge_rest() {
    detector_.finish();
    if (surprising_units_ != 0) {
      incomplete(fmt::format("{} units in a recording that names none", surprising_units_));
    }
    if (kept_whole_ && detector_.simple() && judge_kept()) {
      return;
    }
    if (!everything_) {
      judge_pending(UINT64_MAX);
    } else if (order_.changed()) {
      judge_restored();
    } else {
      judge_everything(UINT64_MAX);
      judge_pending(UINT64_MAX);  // unless everything was judged
    }
    // What the analysis found before it came to its end is not to be found again.
    if (everything_ && too_dear_ && !order_.changed() && report_.violations() == 0) {
      everything_ = false;
      detector_.simplify();
      detector_.finish();
      judge_pending(UINT64_MAX);
    }
  }

  Result<CheckReport> report(bool complete, uint64_t lost_events) {
    report_.lost_events = lost_events;
    if (ended_) {
      incomplete(limit_text(*ended_));
    }
    if (error_) {
      return tl::unexpected<Error>(*error_);
    }
    const DetectorStatistics seen = detector_.statistics();
    if (!complete && !reported_loss_) {
      incomplete(lost_events == 0 ? "events were lost"
                                  : fmt::format("{} events were lost", lost_events));
    }
    if (seen.late_events > 0 && !judged_whole_) {
      incomplete(
          fmt::format("{} events contradict the order of those before them", seen.late_events));
    }
    if (seen.evicted > 0 && !judged_whole_) {
      incomplete(
          fmt::format("{} stores that nothing drains were given up; --store-buffer bounds "
                      "what a store buffer holds",
                      seen.evicted));
    }
    if (seen.unordered) {
      incomplete(OpenHandOvers::kWhy);
    }
    if (seen.misled) {
      incomplete(LockWords::kWhy);
    }
    if (seen.uncertain > 0 && !judged_whole_) {
      incomplete("the order of conflicting accesses to an atomic set is not certain");
    }
    if (options_.property == Property::kAtomicSets && options_.sets == SetChoice::kObjects &&
        seen.objects == 0 && !judged_whole_) {
      incomplete(kNoObjects);
    }
    if (detector_.simple() && !judged_whole_) {
      incomplete(options_.property == Property::kRobustness ? kNoExecution : kOneExecution);
    }
    if (unjudged_ > 0) {
      incomplete(fmt::format("{} groups of units spread too far to be searched", unjudged_));
    }
    if (unseen_ > 0) {
      report_.notes.say(
          fmt::format("{} further groups of units were counted, not searched", unseen_));
    }
    add_cycles();
    keep_more(std::move(aside_), symbols_, &report_);
    if (!complete) {
      distrust_losses(&report_);
    }
    for (Finding& finding : report_.findings) {
      for (uint64_t& index : finding.index) {
        index = order_.line(index);
      }
      if (Repeats& repeats = finding.violation.repeats; repeats.found.all() != 0) {
        repeats.first = order_.line(repeats.first);
        repeats.last = order_.line(repeats.last);
      }
    }
    for (FenceAdvice& advice : report_.unfenced) {
      for (uint64_t* index : {&advice.first, &advice.last, &advice.after}) {
        *index = order_.line(*index);
      }
    }
    report_.arrange(options_.most_findings());
    keep_judged(
        options_, [this] { return whole_again(); }, &report_);
    return std::move(report_);
  }

  DetectorOptions detector_options() const {
    DetectorOptions options;
    options.policy = policy_of(options_.property);
    options.relation = options_.analysis.relation;
    options.sets = options_.sets;
    options.history_events = options_.history_events;
    options.values = options_.analysis.values;
    return options;
  }

  DetectorCallbacks callbacks() {
    DetectorCallbacks callbacks;
    callbacks.on_cycle = [this](const DetectedCycle& cycle) { cycles_.close(cycle); };
    if (options_.analysis.told != Told::kFirst) {
      callbacks.on_repeated = callbacks.on_cycle;
      callbacks.on_joined = [this](uint64_t part, uint64_t whole) { cycles_.join(part, whole); };
    }
    callbacks.on_candidate = [this](DetectedCandidate&& candidate) {
      pending_.push_back(std::move(candidate));
    };
    callbacks.wants_events = [](const DetectedCandidate&) { return false; };
    return callbacks;
  }

  void incomplete(std::string why) { report_.missing(std::move(why)); }

  // No cycle of units can be closed: orders of single events alone have none.
  void count(const EventBlock& block) {
    everything_ = false;
    report_.events += block.events.size();
    if (options_.progress != nullptr) {
      options_.progress->events += block.events.size();
    }
    surprising_units_ += static_cast<uint64_t>(
        std::count_if(block.events.begin(), block.events.end(),
                      [](const Event& event) { return event.kind() == EventKind::kUnitBegin; }));
  }

  void remember(const BlockOrigin& origin) {
    if (auto kept = order_.add(report_.events, origin, everything_); !kept && !error_) {
      error_ = kept.error();
    }
  }

  Trace everything() const {
    Trace trace;
    if (report_.events > 0) {
      static_cast<EventBlock&>(trace) = detector_.slice(0, report_.events - 1).events;
    }
    trace.symbols = symbols_;
    trace.complete = trace_complete_;
    trace.lost_events = report_.lost_events;
    return trace;
  }

  std::optional<Trace> whole_again() const {
    if (report_.events > options_.history_events || (order_.changed() && !everything_)) {
      return std::nullopt;
    }
    std::vector<uint64_t> place;
    return order_.changed() ? order_.restore(everything(), &place) : everything();
  }

  // The whole input as it was before it was put in order.
  void judge_restored() {
    if (error_) {
      return;
    }
    std::vector<uint64_t> place;
    const auto trace = order_.restore(everything(), &place);
    if (!trace) {
      error_ = Error{ErrorKind::kEnvironment, {}, {}, "a temporary file cannot be read"};
      return;
    }
    take(analyse_all(*trace, {}, Extent::kWhole), *trace, &place);
    judged_whole_ = true;
    reported_loss_ = !trace_complete_;
    forget_cycles(nullptr);
    pending_.clear();
  }

  // What comes behind a candidate tells something of it: one that ends later has to wait.
  uint64_t judged_up_to() const {
    const uint64_t behind = std::min(Detector::kAround.back(), options_.history_events / 8);
    return report_.events - std::min(report_.events, behind);
  }

  // The candidates that end before that event.
  std::vector<DetectedCandidate> take_pending(uint64_t end_before) {
    const auto wait = std::stable_partition(
        pending_.begin(), pending_.end(),
        [&](const DetectedCandidate& candidate) { return end_of(candidate) < end_before; });
    std::vector<DetectedCandidate> candidates(std::make_move_iterator(pending_.begin()),
                                              std::make_move_iterator(wait));
    pending_.erase(pending_.begin(), wait);
    return candidates;
  }

  // Candidates up to an event, in the whole input so far; all of it where the detector did not see
  // everything.
  void judge_everything(uint64_t end_before) {
    const DetectorStatistics seen = detector_.statistics();
    const bool whole = seen.late_events > 0 || seen.uncertain > 0 || seen.evicted > 0;
    std::vector<DetectedCandidate> candidates = take_pending(end_before);
    if (error_ || (candidates.empty() && cycles_.empty() && !whole)) {
      return;
    }
    const Trace trace = everything();
    if (whole) {
      candidates.assign(end_before < trace.events.size() ? 1 : 0, all_before(trace, end_before));
    }
    Result<Analysis> analysis = analyse_all(trace, candidates, Extent::kWhole);
    if (told_apart() && !whole && analysis && ended_early(*analysis)) {
      // Each by itself, as those of longer inputs.
      set_aside(std::move(*analysis), trace);
      everything_ = false;
      pending_.insert(pending_.begin(), std::make_move_iterator(candidates.begin()),
                      std::make_move_iterator(candidates.end()));
      return;
    }
    take(std::move(analysis), trace, nullptr);
    judged_whole_ = whole;
    reported_loss_ = !trace_complete_;
    forget_cycles(whole || end_before == UINT64_MAX ? nullptr : &candidates);
  }

  // The whole input, of which so much is open that the detector looked at one execution alone: whether it is
  // violated at all, and if it is, all of it. False: not all was decided.
  bool judge_kept() {
    if (error_ || report_.violations() > 0) {
      return false;
    }
    const Trace trace = everything();
    bool violated = !cycles_.empty();
    if (!violated) {
      AnalysisOptions asked = options_.analysis;
      asked.property = options_.property;
      Result<Analysis> analysis;
      const WorkSpent spent = measured(kWholeBudget.of(trace.events.size()),
                                       [&] { analysis = analyse_crossing_units(trace, asked); });
      const bool decided = !spent.over && analysis && analysis->verdict() != Verdict::kInconclusive;
      violated = decided && analysis->violations() > 0;
      if (decided && !(violated && told_apart())) {
        return take_kept(std::move(analysis), trace);
      }
      if (violated) {
        set_aside(std::move(*analysis), trace);
      }
    }
    if (violated ? !told_apart() : report_.events > with_effort(kMostExact)) {
      return false;
    }
    Result<Analysis> analysis =
        analyse_all(trace, {}, Extent::kSlice, violated ? kAllViolationsBudget : kWholeBudget);
    if (told_apart() && analysis && ended_early(*analysis)) {
      set_aside(std::move(*analysis), trace);
      return false;
    }
    return take_kept(std::move(analysis), trace);
  }

  bool take_kept(Result<Analysis>&& analysis, const Trace& trace) {
    take(std::move(analysis), trace, nullptr);
    judged_whole_ = !too_dear_;
    if (judged_whole_) {
      cycles_.forget();
      pending_.clear();
    }
    return judged_whole_;
  }

  // What an analysis found that did not look at all. It is told of where what is done instead finds less.
  void set_aside(Analysis&& analysis, const Trace& trace) {
    const WorkPause outside;
    CheckReport found;
    FindingKinds kinds(options_.analysis.told, symbols_);
    add_analysis(std::move(analysis), trace, nullptr, &kinds, nullptr, &found);
    std::move(found.findings.begin(), found.findings.end(), std::back_inserter(aside_));
  }

  // The analysis of the whole input has reported them, if it came to its end: all, or those of candidates.
  void forget_cycles(const std::vector<DetectedCandidate>* judged) {
    if (analysis_ended_) {
      return;
    }
    if (judged == nullptr || options_.analysis.told == Told::kFirst) {
      cycles_.forget();
      return;
    }
    for (const DetectedCandidate& candidate : *judged) {
      cycles_.resolve(candidate);
    }
  }

  // Candidates up to an event, of an input that is too long to be kept, each with those it overlaps.
  void judge_pending(uint64_t end_before) {
    if (everything_ || error_) {
      return;
    }
    for (std::vector<DetectedCandidate> next = take_pending(end_before); !next.empty();
         next = std::exchange(like_others_, {})) {
      judge_candidates(std::move(next));
    }
  }

  void judge_candidates(std::vector<DetectedCandidate> candidates) {
    std::sort(candidates.begin(), candidates.end(),
              [](const DetectedCandidate& a, const DetectedCandidate& b) {
                return a.units.front().first < b.units.front().first;
              });
    std::vector<CandidateGroup> groups;
    for (DetectedCandidate& candidate : candidates) {
      if (!wanted(candidate)) {
        continue;
      }
      if (!detector_.affords(end_of(candidate) - candidate.units.front().first + 1)) {
        miss(candidate);
        continue;
      }
      // Cycles of one execution may overlap without end.
      add_to_groups(std::move(candidate), detector_.simple(), &groups);
    }
    const unsigned jobs = options_.jobs != 0 ? options_.jobs : usable_processors();
    const uint64_t number = share_.number(groups.size());
    const auto analyse = [&](size_t i) {
      const CandidateShare bounds = bounds_left(groups[i]);
      if (!share_.own(groups[i], number + i)) {
        return GroupShare::left_to_others(bounds);
      }
      if (auto known = share_.known(groups[i], bounds, detector_)) {
        return std::move(*known);
      }
      return analyse_group(groups[i], bounds, judge_, detector_, report_.events,
                           groups.size() > 1 ? 1 : options_.jobs);
    };
    work_in_order(groups.size(), jobs, analyse, [&](size_t i, JudgedGroup&& judged) {
      // What is left depends on the groups before, which may still have been at work.
      if (bounds_left(groups[i]) != judged.bounds) {
        judged = analyse(i);
      }
      share_.keep(groups[i], judged, detector_);
      take(groups[i], std::move(judged));
    });
  }

  CandidateShare bounds_left(const CandidateGroup& group) const {
    return costs_.left(options_.analysis, report_.events, group.last - group.first + 1);
  }

  void take(const CandidateGroup& group, JudgedGroup&& judged) {
    if (!judged.bounds.affordable) {
      for (const DetectedCandidate& candidate : group.candidates) {
        miss(candidate);
      }
      return;
    }
    costs_.add_events(judged.events);
    detector_.judged(judged.work);
    const uint64_t found = report_.violations();
    const std::vector<CertainCycles::Taken> taken = take(
        std::move(*judged.judgement.analysis), judged.judgement.slice, &judged.judgement.index);
    for (const DetectedCandidate& candidate : group.candidates) {
      if (report_.violations() > found) {
        cycles_.analysed(candidate, taken);
      } else if (candidate.directed) {
        // Nothing that the analysis says of a slice takes a cycle of certain orders away.
        show(candidate);
      }
    }
  }

  // It is not analysed.
  void miss(const DetectedCandidate& candidate) {
    if (candidate.directed) {
      show(candidate);
    } else {
      ++(told_apart() && certain() ? unseen_ : unjudged_);
    }
  }

  void show(const DetectedCandidate& candidate) { counted_ += cycles_.show(candidate) ? 0 : 1; }

  // Not only the first violations.
  bool told_apart() const { return options_.analysis.told != Told::kFirst; }
  bool certain() const { return counted_ > 0 || report_.all().definite > 0; }

  // What the detector reported and no analysis shows, and what it closed and did not report.
  void add_cycles() {
    // In an input that was to be analysed as a whole, and was not, some were not compared with it.
    const bool early = analysis_ended_ || (ended_ && everything_);
    const bool sure = !order_.changed() && detector_.statistics().late_events == 0;
    const uint64_t added = cycles_.show_rest(early, sure);
    counted_ -= told_apart() ? 0 : std::min<uint64_t>(counted_, added);
    // Of sets what was reported of a cycle is all that is known of it.
    const bool sets = options_.property == Property::kAtomicSets;
    const bool certain = !sets || detector_.statistics().uncertain == 0 || cycles_.any_certain() ||
                         certain_analysis_;
    report_.more.add(certain ? Verdict::kDefinite : Verdict::kPossible, counted_);
  }

  // Counts the candidates that are not analysed.
  bool wanted(DetectedCandidate& candidate) {
    // A cycle in the graph of an atomic set needs no further search.
    const bool found = options_.property == Property::kAtomicSets || !candidate.complete;
    const bool enough = report_.findings.size() >= options_.most_findings();
    // Their cycles show what an analysis would.
    const bool shown = told_apart() && searched_ >= with_effort(kMostSearched);
    if (candidate.directed &&
        (found || enough || (shown && options_.analysis.told == Told::kAll))) {
      show(candidate);
      ++report_.components;
      return false;
    }
    if (candidate.directed) {
      switch (cycles_.next(candidate)) {
        case CertainCycles::Next::kAnalyse:
          ++searched_;
          return true;
        case CertainCycles::Next::kWait:
          like_others_.push_back(std::move(candidate));
          return false;
        case CertainCycles::Next::kCounted:
          ++report_.components;
          return false;
      }
    }
    // One execution can close cycles without end.
    const bool many = shown || (told_apart() && detector_.simple() &&
                                report_.violations() >= options_.analysis.max_findings);
    if ((counted_ > 0 || certain_analysis_) && (enough || many)) {
      ++unseen_;
      return false;
    }
    ++(candidate.complete ? searched_ : unjudged_);
    return candidate.complete;
  }

  // The candidates of the input as a whole; none: everything.
  Result<Analysis> analyse_all(const Trace& trace, const std::vector<DetectedCandidate>& candidates,
                               Extent extent, const WorkBudget& budget = kWholeBudget) {
    CheckOptions options = options_;
    options.analysis.only = ranges_of(candidates, nullptr);
    Result<Analysis> analysis;
    const WorkSpent spent = measured(budget.of(trace.events.size()),
                                     [&] { analysis = analyse_property(trace, options, extent); });
    too_dear_ = too_dear_ || spent.over;
    return analysis;
  }

  std::vector<CertainCycles::Taken> take(Result<Analysis>&& analysis, const Trace& trace,
                                         const std::vector<uint64_t>* index) {
    if (!analysis) {
      error_ = analysis.error();
      return {};
    }
    analysis_ended_ = analysis_ended_ || (everything_ && ended_early(*analysis));
    certain_analysis_ = certain_analysis_ || analysis->verdict() == Verdict::kDefinite;
    costs_.add(*analysis);
    return add_analysis(std::move(*analysis), trace, index, &kinds_, &fences_, &report_);
  }

  const Symbols& symbols_;
  CheckOptions options_;
  CheckReport report_;
  std::vector<DetectedCandidate> pending_;      // not analysed yet
  std::vector<DetectedCandidate> like_others_;  // that wait for these
  std::vector<Finding> aside_;                  // see set_aside()
  bool everything_ = true;  // the whole input is in the history, and to be analysed
  bool kept_whole_ = true;  // it is in the history, in the order of the stream
  bool trace_complete_ = true;
  bool judged_whole_ = false;      // not only what was flagged
  bool too_dear_ = false;          // the analysis of the whole input came to no end
  bool certain_analysis_ = false;  // of what it flagged
  bool reported_loss_ = false;
  uint64_t counted_ = 0;  // violated groups of units that are in no finding
  bool no_units_ = false;
  uint64_t surprising_units_ = 0;
  uint64_t unjudged_ = 0;
  uint64_t unseen_ = 0;
  uint64_t searched_ = 0;  // candidates
  CandidateCosts costs_;   // of what has been judged; groups that are analysed ahead look at them
  const CandidateJudge judge_;
  FindingKinds kinds_;
  FenceQuestions fences_;
  CertainCycles cycles_;
  GroupShare share_;
  Lifetimes lifetimes_;
  EventBlock renamed_;
  ThreadsAtOnce threads_;
  InputOrder order_;
  std::optional<Error> error_;
  std::optional<WorkLimit> ended_;  // nothing more is judged
  bool analysis_ended_ = false;     // of the whole input: its cycles may not all be in findings
  BoundedDetector detector_;
};

StreamCheck::StreamCheck(const Symbols& symbols, const CheckOptions& options)
    : impl_(std::make_unique<Impl>(symbols, options)) {}
StreamCheck::~StreamCheck() = default;
void StreamCheck::expect_no_units() { impl_->expect_no_units(); }
void StreamCheck::end(WorkLimit limit) { impl_->end(limit); }
void StreamCheck::add(const EventBlock& block, const BlockOrigin& origin) {
  impl_->add(block, origin);
}
Result<CheckReport> StreamCheck::finish(bool complete, uint64_t lost_events) {
  return impl_->finish(complete, lost_events);
}

}  // namespace tsomon
