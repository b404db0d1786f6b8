#include "monitor/watch.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "monitor/check.h"
#include "monitor/check_parts.h"
#include "monitor/fence_advice.h"
#include "monitor/set_window.h"
#include "monitor/window_bounds.h"
#include "offline/orientation_search.h"
#include "tso/units.h"

namespace tsomon {
namespace {

const char* operation_name(EventKind kind) {
  switch (kind) {
    case EventKind::kRead:
      return "load";
    case EventKind::kWrite:
      return "store";
    case EventKind::kReadModifyWrite:
      return "locked";
    case EventKind::kFence:
      return "fence";
    case EventKind::kAcquire:
      return "acquire";
    case EventKind::kRelease:
      return "release";
    case EventKind::kAcquireShared:
      return "acquire shared";
    case EventKind::kReleaseShared:
      return "release shared";
    case EventKind::kFork:
      return "start thread";
    case EventKind::kJoin:
      return "join thread";
    default:
      return "event";
  }
}

std::string unit_text(const FoundStep& step) {
  if (!step.is_unit) {
    return fmt::format("{} event #{}, a unit of its own", step.thread, step.first);
  }
  return fmt::format("{} unit {} (events #{} to #{})", step.thread,
                     step.label.empty() ? "without a label" : step.label, step.first, step.last);
}

std::string access_line(const FoundAccess& access) {
  return access.location.empty()
             ? fmt::format("#{:<6} {}", access.index, access.operation)
             : fmt::format("#{:<6} {:<34} {}", access.index, access.operation, access.location);
}

// The same cycle, wherever it begins, has the same key.
std::string key_of(const std::vector<FoundStep>& cycle) {
  std::vector<std::string> steps;
  steps.reserve(cycle.size());
  for (size_t i = 0; i < cycle.size(); ++i) {
    const FoundStep& before = cycle[(i + cycle.size() - 1) % cycle.size()];
    steps.push_back(
        fmt::format("{}|{}|{}", cycle[i].label, before.to.location, cycle[i].from.location));
  }
  std::rotate(steps.begin(), std::min_element(steps.begin(), steps.end()), steps.end());
  return fmt::format("{}", fmt::join(steps, "\n"));
}

}  // namespace

WatchOptions::WatchOptions() {
  analysis.max_findings = 16;
  analysis.max_total_steps = 20'000;
  analysis.max_total_work = 500'000'000;
}

nlohmann::ordered_json Found::json() const {
  nlohmann::ordered_json object = {{"violation", number},
                                   {"verdict", definite ? "definite" : "possible"}};
  object["cycle"] = nlohmann::ordered_json::array();
  for (const FoundStep& step : cycle) {
    auto locations = nlohmann::ordered_json::array();
    const FoundStep& before = cycle[(&step - cycle.data() + cycle.size() - 1) % cycle.size()];
    for (const std::string* text : {&before.to.location, &step.from.location}) {
      if (!text->empty() && (locations.empty() || locations.back() != *text)) {
        locations.push_back(*text);
      }
    }
    object["cycle"].push_back({{"thread", step.thread},
                               {"label", step.label},
                               {"first", step.first},
                               {"last", step.last},
                               {"locations", std::move(locations)},
                               {"edge", step.edge},
                               {"from", step.from.index},
                               {"to", step.to.index}});
  }
  object["witness"] = nullptr;
  if (!witness.empty()) {
    object["witness"] = nlohmann::ordered_json::array();
    for (const WitnessStep& step : witness) {
      object["witness"].push_back({{step.commit ? "commit" : "issue", step.event}});
    }
  }
  if (!unfenced.empty()) {
    object["unfenced_units"] = nlohmann::ordered_json::array();
    for (const Unfenced& unit : unfenced) {
      object["unfenced_units"].push_back(unit.json);
    }
  }
  return object;
}

std::string Found::text() const {
  std::string out = fmt::format("violation {} ({}): cycle of {} units\n", number,
                                definite ? "definite" : "possible", cycle.size());
  for (size_t i = 0; i < cycle.size(); ++i) {
    const FoundStep& step = cycle[i];
    const FoundAccess& entered = cycle[(i + cycle.size() - 1) % cycle.size()].to;
    out += fmt::format("  [{}] {}\n", i + 1, unit_text(step));
    const bool straight = entered.index <= step.from.index;
    out += fmt::format("        {}\n", access_line(straight ? entered : step.from));
    if (entered.index != step.from.index) {
      out += fmt::format("        {}\n", access_line(straight ? step.from : entered));
    }
    out += fmt::format("      before [{}]: #{} before #{} ({})\n", (i + 1) % cycle.size() + 1,
                       step.from.index, step.to.index, step.edge);
  }
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
        detector_(symbols, detector_options(options_),
                  {[this](const DetectedCycle& cycle) { on_cycle(cycle); },
                   {},
                   [this](DetectedWindow&& window) { on_window(std::move(window)); },
                   [](const DetectedWindow& window) { return !window.directed; }}) {
    options_.analysis.relation = options_.detector.relation;
  }

  void add(const EventBlock& block) {
    count_threads(block);
    detector_.add(block, summary_.events);
    summary_.events += block.events.size();
    judge_waiting(summary_.events);
  }

  void idle() { judge_waiting(UINT64_MAX); }

  void lost(const EventLoss& loss) {
    ++summary_.losses;
    summary_.lost_events += loss.events;
    detector_.lost(loss.thread);
  }

  void incomplete() { missing_ = true; }
  void finish() {
    finished_ = true;
    detector_.finish();
    judge_waiting(UINT64_MAX);
  }

  WatchSummary summary() const {
    WatchSummary summary = summary_;
    summary.detector = detector_.statistics();
    summary.threads = static_cast<uint32_t>(std::count(seen_.begin(), seen_.end(), 1));
    for (const uint64_t count : detector_.cycle_counts()) {
      summary.occurrences += count;
    }
    add_gaps(&summary);
    return summary;
  }

 private:
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
    gap(missing_, "something was not recorded");
    gap(summary->unjudged != 0, "some groups of units were not decided");
    gap(summary->detector.late_events != 0, "events contradict the order of those before them");
    gap(summary->detector.forced != 0, "stores that nothing drains were given up");
    gap(summary->detector.uncertain != 0,
        "the order of conflicting accesses to an atomic set is not certain");
    gap(summary->complete() && !detector_.complete(), "not all of it could be judged");
  }

  void count_threads(const EventBlock& block) {
    for (const Event& event : block.events) {
      if (event.thread >= seen_.size()) {
        seen_.resize(event.thread + 1, 0);
      }
      seen_[event.thread] = 1;
    }
  }

  FoundAccess access(uint64_t index, const Event& event) const {
    FoundAccess found;
    found.index = index;
    found.operation = operation_name(event.kind());
    if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
      found.operation += " " + thread_name(static_cast<ThreadId>(event.address));
    } else if (event.kind() != EventKind::kFence) {
      found.operation += " " + symbols_->access_text(event);
    }
    found.location = source_text(event.location);
    return found;
  }

  std::string source_text(uint32_t location) const {
    std::string text = symbols_->location_text(location);
    return options_.locate && !text.empty() ? options_.locate(text) : text;
  }

  FoundAccess access(const DetectedAccess& detected) const {
    return access(detected.index, event_of(detected));
  }

  std::string thread_name(ThreadId thread) const {
    return thread < symbols_->threads.size() ? std::string(symbols_->threads.text(thread))
                                             : fmt::format("T{}", thread);
  }

  std::string label(uint32_t id) const {
    return id < symbols_->labels.size() ? std::string(unit_label(symbols_->labels.text(id)))
                                        : std::string();
  }

  // Where events are missing a load may have been forwarded from a store that is, and values may be
  // of one.
  bool stands(EventKind from, EdgeKind edge) const {
    const bool certain =
        edge == EdgeKind::kConflict || edge == EdgeKind::kProgramOrder || edge == EdgeKind::kThread;
    return (summary_.losses == 0 && !missing_) ||
           (certain && (from != EventKind::kRead || edge == EdgeKind::kThread ||
                        options_.detector.policy != DetectorPolicy::kTso));
  }

  void on_cycle(const DetectedCycle& cycle) {
    Found found;
    found.definite = cycle.certain();
    for (const DetectedStep& step : cycle.steps) {
      found.definite = found.definite && stands(step.from.kind, step.kind);
      found.cycle.push_back({thread_name(step.unit.thread), label(step.unit.label),
                             step.unit.label != Interner::kNone, step.unit.first, step.unit.last,
                             access(step.from), access(step.to), edge_name(step.kind)});
    }
    // The detector counts the repetitions of its cycles itself.
    report(std::move(found), 0);
  }

  void on_window(DetectedWindow&& window) {
    if (window.directed) {
      return;  // its cycles were reported
    }
    ++summary_.windows;
    if (!window.complete || window.events.events.empty()) {
      ++summary_.unjudged;
      return;
    }
    Waiting waiting;
    waiting.first = window.index[window.in_front];
    waiting.last = window.index.back();
    waiting.stretch = {
        std::move(window.events), std::move(window.index), window.in_front, window.all_stores, {}};
    waiting.window = std::move(window);
    waiting.window.events = EventBlock();
    waiting.window.index.clear();
    for (const uint64_t around : Detector::kAround) {
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

  // True: nothing more is to be asked about the window.
  bool look(uint64_t around, bool all_behind, Waiting* waiting) {
    if (options_.stop && options_.stop()) {
      ++summary_.unjudged;
      return true;
    }
    const auto decline = [&] {
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
    };
    DetectedStretch stretch = std::exchange(waiting->stretch, {});
    const uint64_t size = stretch.index.size();
    if (around != 0) {
      if (looked_around_ > kLookAroundAtFirst + kLookAroundPerEvent * summary_.events) {
        return decline();
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
      return decline();
    }
    costs_.add_events(events);
    waiting->begin = stretch.index[stretch.in_front];
    waiting->end = stretch.index.back();
    Trace trace;
    static_cast<EventBlock&>(trace) = std::move(stretch.events);
    trace.symbols.initial_zero = false;
    trace.symbols.initial_values = std::move(stretch.initial);
    trace.in_front = stretch.in_front;
    AnalysisOptions options = options_.analysis;
    options.values &= stretch.all_stores && summary_.losses == 0;
    options.only = ranges_of(waiting->window.units, stretch.index);
    share.limit(&options);
    const bool has_values = trace.has_read_values();
    if (around == 0 && options.values && has_values) {
      options.max_total_work = std::min(options.max_total_work, kFirstLookWork);
    }
    const Result<Analysis> analysis = sets_ ? analyse_set_windows(*symbols_, {&waiting->window, 1},
                                                                  options, &trace, &stretch.index)
                                            : analyse_exactly(trace, options);
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
    return analysis && around != 0 && analysis->work > kWorkToLookAround ? decline() : false;
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
    const Violation& violation = analysis.findings[finding];
    const UnitTable units(trace);
    Found found;
    found.definite = violation.verdict == Verdict::kDefinite;
    for (const CycleEdge& edge : violation.cycle) {
      const Unit& unit = units[edge.unit];
      found.definite = found.definite && stands(trace.events[edge.from].kind(), edge.kind);
      found.cycle.push_back({thread_name(unit.thread), label(unit.label),
                             unit.label != Interner::kNone, index[unit.first_event],
                             index[unit.last_event],
                             access(index[edge.from], trace.events[edge.from]),
                             access(index[edge.to], trace.events[edge.to]), edge_name(edge.kind)});
    }
    for (const Step& step : violation.witness) {
      found.witness.push_back({index[step.event], step.commit});
    }
    std::vector<FenceAdvice> unfenced;
    add_fence_advice(analysis, trace, units, &index, &unfenced);
    for (const FenceAdvice& advice : unfenced) {
      const std::string location = source_text(advice.store.location);
      found.unfenced.push_back({fence_advice_json(advice, *symbols_, location),
                                fence_advice_line(advice, *symbols_, location)});
    }
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
  const bool sets_;
  std::deque<Waiting> waiting_;
  std::vector<uint8_t> seen_;  // by thread: 1 if it has an event
  std::unordered_map<std::string, bool> reported_;
  Detector detector_;
};

Watch::Watch(const Symbols& symbols, WatchOptions options, Callback callback)
    : impl_(std::make_unique<Impl>(symbols, std::move(options), std::move(callback))) {}
Watch::~Watch() = default;
void Watch::add(const EventBlock& block) { impl_->add(block); }
void Watch::lost(const EventLoss& loss) { impl_->lost(loss); }
void Watch::incomplete() { impl_->incomplete(); }
void Watch::idle() { impl_->idle(); }
void Watch::finish() { impl_->finish(); }
WatchSummary Watch::summary() const { return impl_->summary(); }

}  // namespace tsomon
