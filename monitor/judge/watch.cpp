#include "monitor/judge/watch.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "monitor/events/held_units.h"
#include "monitor/findings/cycle_accesses.h"
#include "monitor/findings/event_count.h"
#include "monitor/findings/event_text.h"
#include "monitor/judge/check.h"
#include "monitor/judge/check_parts.h"
#include "monitor/judge/fence_advice.h"
#include "monitor/judge/lock_cycles.h"
#include "monitor/judge/set_window.h"
#include "monitor/judge/window_bounds.h"
#include "offline/check/orientation_search.h"
#include "online/detector/bounded_detector.h"
#include "tso/check/analysis_budget.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/units.h"
#include "tso/support/work.h"

namespace tsomon {

WatchOptions::WatchOptions() {
  analysis.max_findings = 16;
  analysis.max_total_steps = 20'000;
  analysis.max_total_work = 500'000'000;
}

void WatchOptions::ask(CheckProperty property, SetChoice sets) {
  switch (property) {
    case CheckProperty::kSerializability:
      detector.policy = DetectorPolicy::kTso;
      break;
    case CheckProperty::kRobustness:
      detector.policy = DetectorPolicy::kRobustness;
      break;
    case CheckProperty::kScSerializability:
      detector.policy = DetectorPolicy::kSc;
      detector.relation.model = MemoryModel::kSc;
      break;
    case CheckProperty::kAtomicSets:
      detector.policy = DetectorPolicy::kAtomicSets;
      detector.sets = sets;
      break;
  }
  analysis.property = analysed_property(property);
}

CheckProperty WatchOptions::property() const {
  switch (detector.policy) {
    case DetectorPolicy::kSc:
      return CheckProperty::kScSerializability;
    case DetectorPolicy::kRobustness:
      return CheckProperty::kRobustness;
    case DetectorPolicy::kAtomicSets:
      return CheckProperty::kAtomicSets;
    default:
      return CheckProperty::kSerializability;
  }
}

nlohmann::ordered_json Found::json() const {
  nlohmann::ordered_json object = {{"violation", number},
                                   {"property", property_name(property)},
                                   {"verdict", definite ? "definite" : "possible"}};
  add_cycle_json(cycle, &object);
  if (!unfenced.empty()) {
    object["unfenced_units"] = nlohmann::ordered_json::array();
    for (const Unfenced& unit : unfenced) {
      object["unfenced_units"].push_back(unit.json);
    }
  }
  return object;
}

std::string Found::text() const {
  std::string out = fmt::format("violation {} ({}, {}): cycle of {} {}\n", number,
                                definite ? "definite" : "possible", property_name(property),
                                cycle.steps.size(), cycle.of_events ? "events" : "units");
  out += cycle_text(cycle);
  if (!unfenced.empty()) {
    out += "  units whose stores may commit after their end:\n";
  }
  for (const Unfenced& unit : unfenced) {
    out += fmt::format("    {}\n", unit.line);
  }
  return out;
}

class Watch::Impl {
 public:
  Impl(const Symbols& symbols, WatchOptions options, Callback callback)
      : symbols_(&symbols),
        options_(std::move(options)),
        callback_(std::move(callback)),
        sets_(options_.detector.policy == DetectorPolicy::kAtomicSets),
        buffers_(options_.detector.policy == DetectorPolicy::kTso ||
                 options_.detector.policy == DetectorPolicy::kRobustness),
        detector_(symbols, detector_options(options_),
                  {[this](const DetectedCycle& cycle) { on_cycle(cycle); },
                   {},
                   [this](DetectedWindow&& window) { on_window(std::move(window)); },
                   [](const DetectedWindow& window) { return !window.directed; }}) {
    options_.analysis.relation = options_.detector.relation;
    options_.names.objects = objects_;
  }

  void expect_cancels() {
    if (!held_) {
      held_.emplace().expect_cancels();
    }
  }

  void add(const EventBlock& block) {
    if (held_) {
      part_.events.append(block);
      held_->add(part_);
      judge_held();
    } else if (const auto cancels =
                   std::count_if(block.events.begin(), block.events.end(),
                                 [](const Event& event) { return event.kind() == kUnitCancel; });
               cancels != 0) {
      summary_.surprises += static_cast<uint64_t>(cancels);
      judge(without_cancels(block));
    } else {
      judge(block);
    }
  }

  void idle() {
    unless_stopped([&] { judge_waiting(UINT64_MAX); });
  }

  void lost(const EventLoss& loss) {
    if (held_) {
      part_.losses.push_back(loss);
    } else {
      lose(loss);
    }
  }

  void incomplete() { missing_ = true; }
  void finish() {
    if (held_) {
      held_->add(part_);  // losses
      held_->finish();
      judge_held();
    }
    finished_ = true;
    unless_stopped([&] {
      detector_.finish();
      judge_waiting(UINT64_MAX);
    });
    if (ended_) {
      while (const auto cycle = lock_cycles_.take(UINT64_MAX)) {
        report(found_of(*cycle), 0);
      }
      std::for_each(waiting_.begin(), waiting_.end(),
                    [this](Waiting& waiting) { decline(&waiting); });
      waiting_.clear();
    }
  }

  WatchSummary summary() const {
    WatchSummary summary = summary_;
    summary.property = options_.property();
    summary.ended = ended_;
    summary.threads = count_.threads();
    summary.detector = detector_.statistics();
    summary.units = count_.units();
    summary.basis = basis_of(count_, *symbols_, {}, options_.source);
    for (const uint64_t count : detector_.cycle_counts()) {
      summary.occurrences += count;
    }
    summary.taken_apart = held_ ? held_->taken_apart() : 0;
    add_gaps(&summary);
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
    unless_stopped([&] { detector_.add(block, summary_.events); });
    lock_cycles_.follow(block, summary_.events, count_);
    count_.add(block);
    summary_.events += block.events.size();
    unless_stopped([&] { judge_waiting(summary_.events); });
  }

  // What need not wait any more.
  void judge_held() {
    while (held_->take(part_)) {
      for (const EventLoss& loss : part_.losses) {
        lose(loss);
      }
      part_.losses.clear();
      judge(part_.events);
      part_.events.clear();
    }
  }

  // The units have been taken for such.
  static EventBlock without_cancels(const EventBlock& block) {
    EventBlock own = block;
    for (Event& event : own.events) {
      if (event.kind() == kUnitCancel) {
        event.set_kind(EventKind::kUnitEnd);
      }
    }
    return own;
  }

  void lose(const EventLoss& loss) {
    ++summary_.losses;
    summary_.lost_events += loss.events;
    unless_stopped([&] { detector_.lost(loss.thread); });
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
    gap(summary->detector.forced != 0, "stores that nothing drains were given up");
    gap(summary->detector.uncertain != 0,
        "the order of conflicting accesses to an atomic set is not certain");
    gap(summary->complete() && !detector_.complete(), "not all of it could be judged");
  }

  ReportedAccess access(uint64_t index, const Event& event) const {
    return reported_access(index, event, *symbols_, options_.names);
  }

  ReportedAccess access(const DetectedAccess& detected) const {
    return access(detected.index, event_of(detected));
  }

  ReportedStep step(ThreadId thread, uint32_t label, uint64_t first, uint64_t last) const {
    ReportedStep step;
    step.thread = thread_text(thread, *symbols_);
    step.label = label < symbols_->labels.size()
                     ? std::string(unit_label(symbols_->labels.text(label)))
                     : std::string();
    step.is_unit = label != Interner::kNone;
    step.first = first;
    step.last = last;
    return step;
  }

  // Where events are missing a load may have been forwarded from a store that is, and values may be
  // of one.
  bool stands(EventKind from, EdgeKind edge) const {
    const bool certain =
        edge == EdgeKind::kConflict || edge == EdgeKind::kProgramOrder || edge == EdgeKind::kThread;
    return (summary_.losses == 0 && !missing_) ||
           (certain && (from != EventKind::kRead || edge == EdgeKind::kThread || !buffers_));
  }

  Found new_found(bool definite) const {
    Found found;
    found.property = options_.property();
    found.definite = definite;
    found.cycle.of_events = found.property == CheckProperty::kRobustness;
    return found;
  }

  void on_cycle(const DetectedCycle& cycle) {
    if (LockCycles::is_one(cycle)) {
      lock_cycles_.add(cycle);
    } else {
      report(found_of(cycle), 0);
    }
  }

  // By what the lock guards, if that shows it as well.
  void tell_lock_cycle(const DetectedCycle& cycle) {
    const WorkPause outside;  // it is told, whoever asks for a stop; few events are looked at
    auto found = found_of_data(cycle);
    report(found && found->definite ? std::move(*found) : found_of(cycle), 0);
  }

  std::optional<Found> found_of_data(const DetectedCycle& cycle) {
    uint64_t first = UINT64_MAX;
    for (const DetectedStep& step : cycle.steps) {
      first = std::min(first, step.unit.first);
    }
    DetectedStretch stretch = detector_.stretch(first, summary_.events - 1);
    const uint64_t events = stretch.index.size();
    if (events == stretch.in_front || stretch.index[stretch.in_front] > first ||
        !costs_.left(options_.analysis, summary_.events, events).affordable) {
      return std::nullopt;
    }
    costs_.add_events(events);
    const Trace trace = trace_of(&stretch);
    Violation violation;
    violation.verdict = Verdict::kDefinite;
    violation.cycle = cycle_of_data(cycle, trace, stretch.index, options_.analysis.relation);
    if (violation.cycle.empty()) {
      return std::nullopt;
    }
    return found_in(violation, trace, UnitTable(trace), stretch.index);
  }

  static Trace trace_of(DetectedStretch* stretch) {
    Trace trace;
    static_cast<EventBlock&>(trace) = std::move(stretch->events);
    trace.symbols.initial_zero = false;
    trace.symbols.initial_values = std::move(stretch->initial);
    trace.in_front = stretch->in_front;
    return trace;
  }

  // The detector counts the repetitions of its cycles itself.
  Found found_of(const DetectedCycle& cycle) const {
    Found found = new_found(cycle.certain());
    CycleAccesses accesses;
    for (const DetectedStep& detected : cycle.steps) {
      found.definite = found.definite && stands(detected.from.kind, detected.kind);
      accesses.add(access(detected.from));
      accesses.add(access(detected.to));
    }
    accesses.move_to(&found.cycle.accesses);
    for (const DetectedStep& detected : cycle.steps) {
      const DetectedUnit& unit = detected.unit;
      ReportedStep own = step(unit.thread, unit.label, unit.first, unit.last);
      own.finished = unit.finished;
      own.from = accesses.place(detected.from.index);
      own.to = accesses.place(detected.to.index);
      own.edge = detected.kind;
      found.cycle.steps.push_back(std::move(own));
    }
    list_accesses(&found.cycle);
    return found;
  }

  void on_window(DetectedWindow&& window) {
    if (window.directed) {
      return;  // its cycles were reported
    }
    ++summary_.windows;
    if (!window.complete || window.events.events.empty() ||
        !detector_.affords(window.index.size())) {
      ++summary_.unjudged;
      return;
    }
    Waiting waiting;
    waiting.first = window.index[window.in_front];
    waiting.last = window.index.back();
    waiting.stretch = {std::move(window.events), std::move(window.index), window.in_front,
                       window.all_stores,        window.some_executions,  {}};
    waiting.window = std::move(window);
    waiting.window.events = EventBlock();
    waiting.window.index.clear();
    for (const uint64_t around : Detector::kAround) {
      if (!detector_.affords_around(around)) {
        break;
      }
      if (around == Detector::kAround.back() && !finished_) {
        waiting_.push_back(std::move(waiting));
        return;
      }
      if (look(around, false, &waiting)) {
        return;
      }
    }
    tell(std::move(waiting));
  }

  // Windows that more may be known of when more has come: those up to here.
  void judge_waiting(uint64_t last) {
    while (const auto cycle = lock_cycles_.take(last)) {
      tell_lock_cycle(*cycle);
    }
    while (!waiting_.empty() && (waiting_.front().last + Detector::kAround.back() <= last ||
                                 waiting_.size() > kMaxWaiting)) {
      Waiting waiting = std::move(waiting_.front());
      waiting_.pop_front();
      if (!look(Detector::kAround.back(), true, &waiting)) {
        tell(std::move(waiting));
      }
    }
  }

  // A window that may be violated, or was not decided, as far as it was looked at.
  struct Waiting {
    DetectedWindow window;    // without events
    DetectedStretch stretch;  // until it is looked at: those events
    uint64_t first = 0;
    uint64_t last = 0;
    std::vector<Found> found;  // in the stretch that it was judged in last
    uint64_t violated = 0;     // groups of units; not all of them may be in `found`
    bool undecided = false;
    uint64_t begin = UINT64_MAX;  // of that stretch
    uint64_t end = 0;
  };

  // It is not looked at any more: what was found so far is told as far as it stands. Always true.
  bool decline(Waiting* waiting) {
    for (Found& found : waiting->found) {
      // Possible ones, only where there is one like it that was looked at.
      if (found.definite || reported_.count(report_key(found)) != 0) {
        report(std::move(found), 1);
      } else {
        waiting->undecided = true;
      }
    }
    summary_.unjudged += waiting->undecided || waiting->found.empty() ? 1 : 0;
    return true;
  }

  // True: nothing more is to be asked about the window.
  bool look(uint64_t around, bool all_behind, Waiting* waiting) {
    if (stop_asked()) {
      return decline(waiting);
    }
    DetectedStretch stretch = std::exchange(waiting->stretch, {});
    const uint64_t size = stretch.index.size();
    if (around != 0) {
      if (looked_around_ > kLookAroundAtFirst + kLookAroundPerEvent * summary_.events) {
        return decline(waiting);
      }
      stretch = detector_.stretch(waiting->first, waiting->last, around, all_behind);
      if (stretch.index.size() == stretch.in_front ||
          stretch.index[stretch.in_front] > waiting->first) {
        return false;  // it has left the history
      }
      if (!waiting->undecided && stretch.index[stretch.in_front] == waiting->begin &&
          stretch.index.back() == waiting->end) {
        return false;  // there is no more
      }
      looked_around_ += stretch.index.size();
    }
    // What the windows before have left.
    const uint64_t events = around == 0 ? size : 0;
    const WindowShare share = costs_.left(options_.analysis, summary_.events, events);
    if (!share.affordable) {
      return decline(waiting);
    }
    costs_.add_events(events);
    waiting->begin = stretch.index[stretch.in_front];
    waiting->end = stretch.index.back();
    Trace trace = trace_of(&stretch);
    AnalysisOptions options = options_.analysis;
    options.values &= stretch.all_stores && summary_.losses == 0;
    options.only = ranges_of(waiting->window.units, stretch.index);
    share.limit(&options);
    const bool has_values = trace.has_read_values();
    if (around == 0 && options.values && has_values) {
      options.max_total_work = std::min(options.max_total_work, kFirstLookWork);
    }
    const WorkScope apart(current_meter(), WorkScope::Counted::kNo);  // it has bounds of its own
    Result<Analysis> analysis;
    detector_.judged(measured(kWindowsBudget.of(summary_.events), [&] {
                       analysis = sets_ ? analyse_set_windows(*symbols_, {&waiting->window, 1},
                                                              options, &trace, &stretch.index)
                                        : analyse_exactly(trace, options);
                     }).work);
    const WorkPause outside;  // what was found is told, whoever asks for a stop
    if (analysis) {
      costs_.add(*analysis);
    }
    waiting->found.clear();
    waiting->violated = analysis ? analysis->violations() : 0;
    // Of sets the detector has counted what is not certain.
    waiting->undecided = !analysis || (!sets_ && (analysis->verdict() == Verdict::kInconclusive ||
                                                  analysis->undecided_parts != 0));
    bool definite = true;
    for (size_t i = 0; analysis && i < analysis->findings.size(); ++i) {
      waiting->found.push_back(found_in(*analysis, i, trace, stretch.index));
      waiting->found.back().definite &= !stretch.some_executions;
      definite = definite && waiting->found.back().definite;
    }
    if (waiting->found.empty() && !waiting->undecided) {
      return true;
    }
    const bool more = options_.analysis.values && (around == 0 || has_values) &&
                      around != Detector::kAround.back();
    if ((definite && !waiting->undecided) || !more) {
      tell(std::move(*waiting));
      return true;
    }
    // What took long will take longer with more events.
    return analysis && around != 0 && analysis->work > kWorkToLookAround ? decline(waiting) : false;
  }

  void tell(Waiting&& waiting) {
    summary_.unjudged += waiting.undecided ? 1 : 0;
    summary_.occurrences += waiting.violated - std::min(waiting.violated, waiting.found.size());
    for (Found& found : waiting.found) {
      report(std::move(found), 1);
    }
  }

  Found found_in(const Analysis& analysis, size_t finding, const Trace& trace,
                 const std::vector<uint64_t>& index) const {
    const UnitTable units(trace);
    Found found = found_in(analysis.findings[finding], trace, units, index);
    std::vector<FenceAdvice> unfenced;
    add_fence_advice(analysis, trace, units, &index, &unfenced);
    for (const FenceAdvice& advice : unfenced) {
      found.unfenced.push_back({fence_advice_json(advice, *symbols_, options_.names),
                                fence_advice_line(advice, *symbols_, options_.names)});
    }
    return found;
  }

  Found found_in(const Violation& violation, const Trace& trace, const UnitTable& units,
                 const std::vector<uint64_t>& index) const {
    Found found = new_found(violation.verdict == Verdict::kDefinite);
    CycleAccesses accesses;
    const auto add = [&](uint32_t e) {
      ReportedAccess one = access(index[e], trace.events[e]);
      add_values(trace, trace.events[e], &one);
      accesses.add(std::move(one));
    };
    for (const CycleEdge& edge : violation.cycle) {
      found.definite = found.definite && stands(trace.events[edge.from].kind(), edge.kind);
      add(edge.from);
      add(edge.to);
    }
    for (const Step& taken : violation.witness) {
      add(taken.event);
    }
    accesses.move_to(&found.cycle.accesses);
    for (const CycleEdge& edge : violation.cycle) {
      const Unit& unit = units[edge.unit];
      const bool one = found.cycle.of_events;
      ReportedStep own = step(unit.thread, unit.label, index[one ? edge.from : unit.first_event],
                              index[one ? edge.from : unit.last_event]);
      own.finished = unit.finished;
      own.from = accesses.place(index[edge.from]);
      own.to = accesses.place(index[edge.to]);
      own.edge = edge.kind;
      found.cycle.steps.push_back(std::move(own));
    }
    for (const Step& taken : violation.witness) {
      found.cycle.witness.push_back({accesses.place(index[taken.event]), taken.commit});
    }
    list_accesses(&found.cycle);
    return found;
  }

  // A definite one is told even where a possible one with the same locations was.
  static std::string report_key(const Found& found) {
    return fmt::format("{} {}", found.definite ? "definite" : "possible", key_of(found.cycle));
  }

  void report(Found&& found, uint64_t occurrences) {
    summary_.occurrences += occurrences;
    if (!reported_.emplace(report_key(found), true).second) {
      return;
    }
    summary_.found.add(found.definite ? Verdict::kDefinite : Verdict::kPossible);
    found.number = summary_.found.all();
    callback_(found);
  }

  // A bound of their own: a second look leaves the first looks at later windows theirs.
  static constexpr uint64_t kLookAroundAtFirst = 1U << 20;
  static constexpr uint64_t kLookAroundPerEvent = 4;
  static constexpr uint64_t kWorkToLookAround = 100'000'000;
  static constexpr size_t kMaxWaiting = 1024;  // windows

  const Symbols* symbols_;
  WatchOptions options_;
  Callback callback_;
  uint64_t looked_around_ = 0;  // events that were analysed once more; not in costs_
  WindowCosts costs_;
  WatchSummary summary_;
  bool missing_ = false;
  bool finished_ = false;
  std::optional<WorkLimit> ended_;  // nothing more is judged
  const bool sets_;
  const bool buffers_;  // the property is about store buffers
  std::deque<Waiting> waiting_;
  LockCycles lock_cycles_;
  EventCount count_;
  std::shared_ptr<HeapObjects> objects_ = std::make_shared<HeapObjects>();
  std::optional<HeldUnits> held_;
  HeldUnits::Part part_;  // what lies in front of the next events
  std::unordered_map<std::string, bool> reported_;
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
