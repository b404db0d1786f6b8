#include "monitor/judge/watch.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "monitor/events/held_units.h"
#include "monitor/findings/event_count.h"
#include "monitor/judge/candidate_bounds.h"
#include "monitor/judge/candidate_judge.h"
#include "monitor/judge/cycle_finding.h"
#include "monitor/judge/fence_advice.h"
#include "monitor/judge/lock_cycles.h"
#include "online/detector/bounded_detector.h"
#include "online/stream/lock_words.h"
#include "tso/check/analysis_budget.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/hand_over.h"
#include "tso/model/lifetimes.h"
#include "tso/model/units.h"
#include "tso/support/work.h"

namespace tsomon {

WatchOptions::WatchOptions() {
  analysis.max_findings = 16;
  analysis.max_total_steps = 20'000;
  analysis.max_total_work = 500'000'000;
}

void WatchOptions::ask(Property property, SetChoice sets) {
  detector.policy = policy_of(property);
  if (property == Property::kScSerializability) {
    detector.relation.model = MemoryModel::kSc;
  }
  if (property == Property::kAtomicSets) {
    detector.sets = sets;
  }
  analysis.property = searched_as(property);
}

Property WatchOptions::property() const {
  switch (detector.policy) {
    case DetectorPolicy::kSc:
      return Property::kScSerializability;
    case DetectorPolicy::kRobustness:
      return Property::kRobustness;
    case DetectorPolicy::kAtomicSets:
      return Property::kAtomicSets;
    default:
      return Property::kSerializability;
  }
}

void FindingCount::add(const Repeats& more) {
  first = count == 0 ? more.first : std::min(first, more.first);
  last = std::max(last, more.last);
  count += more.found.all();
}

class Watch::Impl {
 public:
  Impl(const Symbols& symbols, WatchOptions options, Callback callback)
      : symbols_(&symbols),
        options_(std::move(options)),
        callback_(std::move(callback)),
        property_(options_.property()),
        judge_(symbols, property_, analysis_options(options_)),
        fences_(analysis_options(options_)),
        detector_(symbols, detector_options(options_), callbacks(), kMixedLiveBudget) {
    options_.analysis.relation = options_.detector.relation;
    options_.names.objects = objects_;
    if (options_.names.place) {
      held_.know_places(Places(
          [this](uint32_t location) {
            const std::string text = symbols_->location_text(location);
            const SourcePlace place = options_.names.place(text);
            return place.text == text ? symbols_->place_text(location, Symbols::kWithin)
                                      : place.exact();
          },
          [this](uint32_t location) { return symbols_->without_place(location); }));
    }
  }

  void expect_cancels() {
    cancels_ = true;
    held_.expect_cancels();
  }

  void add(const EventBlock& block) {
    waits_.add(block, added_, {});
    added_ += block.events.size();
    part_.events.append(block);
    if (!cancels_) {
      end_cancelled(&part_.events);
    }
    held_.add(part_);
    judge_held();
  }

  void idle() {
    held_.let_idle_go();
    judge_held();
    unless_stopped([&] { judge_waiting(UINT64_MAX); });
  }

  void lost(const EventLoss& loss) { part_.losses.push_back(loss); }

  void incomplete() { missing_ = true; }
  void finish() {
    held_.add(part_);  // losses
    held_.finish();
    judge_held();
    finished_ = true;
    unless_stopped([&] {
      detector_.finish();
      judge_waiting(UINT64_MAX);
    });
    if (ended_) {
      while (const auto cycle = lock_cycles_.take(UINT64_MAX)) {
        report_cycle(*cycle, finding_of(*cycle));
      }
      std::for_each(waiting_.begin(), waiting_.end(),
                    [this](Waiting& waiting) { decline(&waiting); });
      waiting_.clear();
    }
  }

  WatchSummary summary() const {
    WatchSummary summary = summary_;
    summary.property = property_;
    summary.ended = ended_;
    summary.threads = count_.threads();
    summary.detector = detector_.statistics();
    summary.units = count_.units();
    summary.basis = basis_of(count_, *symbols_, {}, options_.source);
    for (const auto& [kind, cycles] : cycles_) {
      if (cycles.told) {
        summary.counts[*cycles.told].add(cycles.repeats);
      }
    }
    for (const uint64_t count : detector_.cycle_counts()) {
      summary.occurrences += count;
    }
    summary.taken_apart = held_.taken_apart();
    add_gaps(&summary);
    if (finished_ && summary.losses == 0 && !missing_) {
      summary.deadlock = happened_deadlock(waits_.stuck(), *symbols_, options_.names);
    }
    return summary;
  }

 private:
  // A stop, or the end of what the detector may do, leaves what has been found so far. The detector
  // is not asked to go on then.
  template <typename Function>
  void unless_stopped(const Function& function) {
    look_for_end();
    if (ended_) {
      return;
    }
    try {
      function();
    } catch (const WorkEnded& end) {
      ended_ = end.limit();
    }
    look_for_end();
  }

  void look_for_end() {
    if (!ended_ && stop_asked()) {
      ended_ = WorkLimit::kStopped;
    } else if (!ended_ && detector_.exhausted()) {
      ended_ = WorkLimit::kWork;
    }
  }

  void judge(const EventBlock& block) {
    for (size_t i = 0; i < block.events.size(); ++i) {
      objects_->add(block.events[i], summary_.events + i);
    }
    const EventBlock* events = &block;
    if (property_ != Property::kAtomicSets) {
      events = &lifetimes_.follow(block, &renamed_);
    }
    unless_stopped([&] { detector_.add(*events, summary_.events); });
    lock_cycles_.follow(*events, summary_.events, count_);
    count_.add(block);
    summary_.events += block.events.size();
    unless_stopped([&] { judge_waiting(summary_.events); });
  }

  // What need not wait any more.
  void judge_held() {
    while (held_.take(part_)) {
      for (const EventLoss& loss : part_.losses) {
        lose(loss);
      }
      part_.losses.clear();
      judge(part_.events);
      part_.events.clear();
    }
  }

  // The units have been taken for such.
  void end_cancelled(EventBlock* block) {
    for (Event& event : block->events) {
      if (event.kind() == kUnitCancel) {
        event.set_kind(EventKind::kUnitEnd);
        ++summary_.surprises;
      }
    }
  }

  void lose(const EventLoss& loss) {
    ++summary_.losses;
    summary_.lost_events += loss.events;
    unless_stopped([&] { detector_.lost(loss.thread); });
  }

  static AnalysisOptions analysis_options(const WatchOptions& options) {
    AnalysisOptions chosen = options.analysis;
    chosen.relation = options.detector.relation;
    return chosen;
  }

  static DetectorOptions detector_options(const WatchOptions& options) {
    DetectorOptions chosen = options.detector;
    chosen.values = chosen.values && options.analysis.values;
    return chosen;
  }

  void add_gaps(WatchSummary* summary) const {
    const auto gap = [&](bool is_one, const char* why) {
      if (is_one) {
        summary->notes.missing(why);
      }
    };
    gap(summary->losses != 0, "events were lost");
    gap(ended_.has_value(), limit_text(ended_.value_or(WorkLimit::kStopped)));
    gap(missing_, "something was not recorded");
    gap(detector_.simple(), kOneExecution);
    gap(summary->unjudged != 0, "some groups of units were not decided");
    gap(summary->taken_apart != 0, "units that may have been cancelled were not waited for");
    if (summary->surprises != 0) {
      summary->notes.missing("units were cancelled by code that was loaded later");
      summary->found = {0, summary->found.all()};
    }
    gap(summary->detector.late_events != 0, "events contradict the order of those before them");
    gap(summary->detector.evicted != 0, "stores that nothing drains were given up");
    gap(summary->detector.unordered, OpenHandOvers::kWhy);
    gap(summary->detector.misled, LockWords::kWhy);
    gap(summary->detector.uncertain != 0,
        "the order of conflicting accesses to an atomic set is not certain");
    gap(summary->complete() && !detector_.complete(), "not all of it could be judged");
  }

  // A violation, and where fences are missing in the units that were judged with it.
  struct Judged {
    Finding finding;
    std::vector<FenceAdvice> unfenced;

    bool definite() const { return verdict_of(finding) == Verdict::kDefinite; }
  };

  // Where events are missing a load may have been forwarded from a store that is, and values may be
  // of one.
  bool stands(EventKind from, EdgeKind edge) const {
    const bool certain = edge == EdgeKind::kConflict || edge == EdgeKind::kProgramOrder ||
                         edge == EdgeKind::kThread || edge == EdgeKind::kHandOver;
    return (summary_.losses == 0 && !missing_) ||
           (certain && (from != EventKind::kRead || edge == EdgeKind::kThread ||
                        !is_about_buffers(property_)));
  }
  Finding as_far_as_it_stands(Finding finding) const {
    const std::vector<CycleEdge>& cycle = finding.violation.cycle;
    if (!std::all_of(cycle.begin(), cycle.end(), [&](const CycleEdge& edge) {
          return stands(finding.events.events[edge.from].kind(), edge.kind);
        })) {
      finding.violation.verdict = Verdict::kPossible;
    }
    return finding;
  }

  DetectorCallbacks callbacks() {
    DetectorCallbacks callbacks;
    callbacks.on_cycle = [this](const DetectedCycle& cycle) { on_cycle(cycle); };
    callbacks.on_repeated = [this](const DetectedCycle& cycle) { on_repeated(cycle); };
    callbacks.on_candidate = [this](DetectedCandidate&& candidate) {
      on_candidate(std::move(candidate));
    };
    callbacks.wants_events = [](const DetectedCandidate& candidate) { return !candidate.directed; };
    return callbacks;
  }

  void on_cycle(const DetectedCycle& cycle) {
    if (LockCycles::is_one(cycle)) {
      lock_cycles_.add(cycle);
    } else {
      report_cycle(cycle, finding_of(cycle));
    }
  }
  void on_repeated(const DetectedCycle& cycle) {
    cycles_[cycle.kind].repeats.add(Verdict::kDefinite, begin_of(cycle));
  }
  void report_cycle(const DetectedCycle& cycle, Finding&& finding) {
    cycles_[cycle.kind].told = report({std::move(finding), {}}, 0);
  }

  // By what the lock guards, if that shows it as well.
  void report_lock_cycle(const DetectedCycle& cycle) {
    const WorkPause outside;  // it is reported, whoever asks for a stop; few events are looked at
    auto found = finding_through_data(cycle);
    const bool definite = found && verdict_of(*found) == Verdict::kDefinite;
    report_cycle(cycle, definite ? std::move(*found) : finding_of(cycle));
  }

  std::optional<Finding> finding_through_data(const DetectedCycle& cycle) {
    uint64_t first = UINT64_MAX;
    for (const DetectedStep& step : cycle.steps) {
      first = std::min(first, step.unit.first);
    }
    DetectedSlice slice = detector_.slice(first, summary_.events - 1);
    const uint64_t events = slice.index.size();
    if (events == slice.pending_prefix || slice.index[slice.pending_prefix] > first ||
        !costs_.left(options_.analysis, summary_.events, events).affordable) {
      return std::nullopt;
    }
    costs_.add_events(events);
    const Trace trace = trace_of(&slice);
    Violation violation;
    violation.verdict = Verdict::kDefinite;
    violation.cycle = cycle_of_data(cycle, trace, slice.index, options_.analysis.relation);
    if (violation.cycle.empty()) {
      return std::nullopt;
    }
    return as_far_as_it_stands(
        make_finding(std::move(violation), trace, UnitTable(trace), &slice.index));
  }

  // The detector counts the repetitions of its cycles itself.
  Finding finding_of(const DetectedCycle& cycle) const {
    return as_far_as_it_stands(finding_of_cycle(cycle, property_, options_.analysis.relation));
  }

  void on_candidate(DetectedCandidate&& candidate) {
    if (candidate.directed) {
      return;  // its cycles were reported
    }
    ++summary_.candidates;
    if (!candidate.complete || candidate.slice.events.events.empty() ||
        !detector_.affords(candidate.slice.index.size())) {
      ++summary_.unjudged;
      return;
    }
    Waiting waiting;
    waiting.slice = std::exchange(candidate.slice, {});
    waiting.first = waiting.slice.index[waiting.slice.pending_prefix];
    waiting.last = waiting.slice.index.back();
    waiting.candidate = std::move(candidate);
    for (const uint64_t around : Detector::kAround) {
      if (!detector_.affords_around(around)) {
        break;
      }
      if (around == Detector::kAround.back() && !finished_) {
        waiting_.push_back(std::move(waiting));
        return;
      }
      if (judge_once(around, false, &waiting)) {
        return;
      }
    }
    report_all(std::move(waiting));
  }

  // Candidates that more may be known of when more has come: those up to here.
  void judge_waiting(uint64_t last) {
    while (const auto cycle = lock_cycles_.take(last)) {
      report_lock_cycle(*cycle);
    }
    while (!waiting_.empty() && (waiting_.front().last + Detector::kAround.back() <= last ||
                                 waiting_.size() > kMaxWaiting)) {
      Waiting waiting = std::move(waiting_.front());
      waiting_.pop_front();
      if (!judge_once(Detector::kAround.back(), true, &waiting)) {
        report_all(std::move(waiting));
      }
    }
  }

  // A candidate that may be violated, or was not decided, as far as it was looked at.
  struct Waiting {
    DetectedCandidate candidate;  // without events
    DetectedSlice slice;          // until it is looked at: those events
    uint64_t first = 0;
    uint64_t last = 0;
    Judgement judgement;  // the one that stands
  };

  // It is not looked at any more: what was found so far is reported as far as it stands. Always true.
  bool decline(Waiting* waiting) {
    bool undecided = !waiting->judgement.done() || waiting->judgement.undecided() > 0;
    std::vector<Judged> all = judged(waiting->judgement);
    const bool nothing = all.empty();
    for (Judged& found : all) {
      // Possible ones, only where there is one like it that was looked at.
      if (found.definite() || reported_.contains(report_key(words(found)))) {
        report(std::move(found), 1);
      } else {
        undecided = true;
      }
    }
    summary_.unjudged += undecided || nothing ? 1 : 0;
    return true;
  }

  // True: nothing more is to be asked about the candidate.
  bool judge_once(uint64_t around, bool all_behind, Waiting* waiting) {
    if (stop_asked()) {
      return decline(waiting);
    }
    DetectedSlice slice = std::exchange(waiting->slice, {});
    const uint64_t size = slice.index.size();
    if (around != 0) {
      if (looked_around_ > kLookAroundAtFirst + kLookAroundPerEvent * summary_.events) {
        return decline(waiting);
      }
      slice = detector_.slice(waiting->first, waiting->last, around, all_behind);
      if (slice.index.size() == slice.pending_prefix ||
          slice.index[slice.pending_prefix] > waiting->first) {
        return false;  // it has left the history
      }
      if (waiting->judgement.undecided() == 0 && waiting->judgement.is_of(slice)) {
        return false;  // there is no more
      }
      looked_around_ += slice.index.size();
    }
    // What the candidates before have left.
    const uint64_t events = around == 0 ? size : 0;
    const CandidateShare share = costs_.left(options_.analysis, summary_.events, events);
    if (!share.affordable) {
      return decline(waiting);
    }
    costs_.add_events(events);
    const WorkScope apart(current_meter(), WorkScope::Counted::kNo);  // it has bounds of its own
    Judgement now = judge_.judge({&waiting->candidate, 1}, std::move(slice), around, share,
                                 summary_.events, summary_.losses == 0, 1);
    detector_.judged(now.work);
    const WorkPause outside;  // what was found is reported, whoever asks for a stop
    if (!now.failed()) {
      costs_.add(now.result());
      if (now.result().violations() == 0 && now.undecided() == 0) {
        return true;
      }
    }
    const bool more = judge_.more_may_say(now, around);
    const bool dear = around != 0 && !now.failed() && now.result().work > kWorkToLookAround;
    if (!CandidateJudge::stands_beside(waiting->judgement, now)) {
      waiting->judgement = std::move(now);
    }
    if (!more) {
      report_all(std::move(*waiting));
      return true;
    }
    // What took long will take longer with more events.
    return dear ? decline(waiting) : false;
  }

  void report_all(Waiting&& waiting) {
    const bool decided = waiting.judgement.done() && waiting.judgement.undecided() == 0;
    summary_.unjudged += decided ? 0 : 1;
    std::vector<Judged> all = judged(waiting.judgement);
    const uint64_t violated = waiting.judgement.done() && !waiting.judgement.failed()
                                  ? waiting.judgement.result().violations()
                                  : all.size();
    summary_.occurrences += violated - std::min<uint64_t>(violated, all.size());
    for (Judged& found : all) {
      report(std::move(found), 1);
    }
  }

  std::vector<Judged> judged(const Judgement& judgement) {
    std::vector<Judged> all;
    if (!judgement.done() || judgement.failed()) {
      return all;
    }
    const UnitTable units(judgement.slice);
    std::vector<FenceAdvice> unfenced;
    add_fence_advice(judgement.result(), judgement.slice, units, &judgement.index, &fences_,
                     &unfenced);
    for (const Violation& violation : judgement.result().findings) {
      all.push_back(
          {as_far_as_it_stands(make_finding(violation, judgement.slice, units, &judgement.index)),
           unfenced});
    }
    return all;
  }

  ReportedFinding words(const Judged& judged) const {
    ReportedFinding words =
        reported(judged.finding, property_, *symbols_, options_.names, ListedAccesses::kOnCycle);
    words.unfenced = reported(judged.unfenced, *symbols_, options_.names);
    return words;
  }

  // A definite one is reported even where a possible one with the same locations was.
  static std::string report_key(const ReportedFinding& found) {
    return fmt::format("{} {}", verdict_name(found.verdict), key_of(found.cycle));
  }

  // Which one of WatchSummary::counts it is.
  size_t report(Judged&& judged, uint64_t occurrences) {
    summary_.occurrences += occurrences;
    ReportedFinding found = words(judged);
    const auto [known, is_new] = reported_.try_emplace(report_key(found), summary_.counts.size());
    const size_t told = known->second;
    if (is_new) {
      summary_.counts.push_back(
          {summary_.found.all() + 1, found.verdict, fingerprint(found.cycle), 0, 0, 0});
    }
    Repeats one;
    one.add(found.verdict, begin_of(judged.finding));
    summary_.counts[told].add(one);
    if (!is_new) {
      return told;
    }
    summary_.found.add(found.verdict);
    found.number = summary_.found.all();
    if (options_.repair) {
      found.repair = options_.repair(judged.finding, *symbols_, options_.names, property_);
    }
    callback_(found);
    return told;
  }

  // A bound of their own: a second look leaves the first looks at later candidates theirs.
  static constexpr uint64_t kLookAroundAtFirst = 1U << 20;
  static constexpr uint64_t kLookAroundPerEvent = 4;
  static constexpr uint64_t kWorkToLookAround = 100'000'000;
  static constexpr size_t kMaxWaiting = 1024;  // candidates

  const Symbols* symbols_;
  WatchOptions options_;
  Callback callback_;
  uint64_t looked_around_ = 0;  // events that were analysed once more; not in costs_
  CandidateCosts costs_;
  WatchSummary summary_;
  bool missing_ = false;
  bool finished_ = false;
  LastWaits waits_;
  uint64_t added_ = 0;              // events
  std::optional<WorkLimit> ended_;  // nothing more is judged
  const Property property_;
  const CandidateJudge judge_;
  FenceQuestions fences_;
  Lifetimes lifetimes_;
  EventBlock renamed_;
  std::deque<Waiting> waiting_;
  LockCycles lock_cycles_;
  EventCount count_;
  std::shared_ptr<HeapObjects> objects_ = std::make_shared<HeapObjects>();
  HeldUnits held_{HeldUnits::kMost, HeldUnits::Hold::kIdleOnly};
  bool cancels_ = false;                              // are expected
  HeldUnits::Part part_;                              // what lies in front of the next events
  std::unordered_map<std::string, size_t> reported_;  // in summary_.counts
  // Cycles that the detector closed, by DetectedCycle::kind.
  struct Cycles {
    std::optional<size_t> told;  // in summary_.counts, once one was reported
    Repeats repeats;
  };
  std::unordered_map<uint32_t, Cycles> cycles_;
  BoundedDetector detector_;
};

Watch::Watch(const Symbols& symbols, WatchOptions options, Callback callback)
    : impl_(std::make_unique<Impl>(symbols, std::move(options), std::move(callback))) {}
Watch::~Watch() = default;
void Watch::expect_cancels() { impl_->expect_cancels(); }
void Watch::add(const EventBlock& block) { impl_->add(block); }
void Watch::lost(const EventLoss& loss) { impl_->lost(loss); }
void Watch::incomplete() { impl_->incomplete(); }
void Watch::idle() { impl_->idle(); }
void Watch::finish() { impl_->finish(); }
WatchSummary Watch::summary() const { return impl_->summary(); }

}  // namespace tsomon
