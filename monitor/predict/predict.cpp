#include "monitor/predict/predict.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/reported_cycle.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "offline/predict/rapid_threads.h"
#include "offline/predict/value_order.h"
#include "tso/model/cancelled_units.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using predict::Branches;
using predict::Race;
using predict::Tier;

// The events of a source in an order that agrees with their values.
class Reader {
 public:
  Reader(EventSource& source, Prediction* prediction) : source_(source), prediction_(prediction) {}

  // What is left of the source. A stop ends the reading, too.
  Result<bool> read() {
    auto whole = read_blocks();
    order_.finish();
    take_ordered();
    return whole;
  }

 private:
  Result<bool> read_blocks() {
    EventBlock block;
    for (;;) {
      auto more = source_.next(block);
      if (!more) {
        more.error().input = source_.input();
        return tl::unexpected<Error>(std::move(more.error()));
      }
      if (!*more) {
        return true;
      }
      const auto& lines = source_.origin().lines;
      for (size_t i = 0; i < block.events.size(); ++i) {
        const Event& event = block.events[i];
        const predict::ValueOrder::Item item{event, block.hi(event), block.read_value(event),
                                             block.write_value(event),
                                             lines.empty() ? events_ : lines[i]};
        ++events_;
        if (unplaced(item)) {
          prediction_->notes.push_back(
              fmt::format("the time stamps order nothing from event {} on: only what comes before "
                          "was looked at",
                          item.line));
          prediction_->trace.complete = false;
          return false;
        }
        if (order_.empty() && item.hi == event.lo) {
          put(item);
        } else {
          order_.add(item);
          take_ordered();
        }
      }
      if (events_ >= prediction_->asked.max_events) {
        prediction_->notes.push_back(
            fmt::format("only the first {} events were looked at", events_));
        prediction_->trace.complete = false;
        return false;
      }
      if (stop_asked()) {
        prediction_->ended = WorkLimit::kStopped;
        return false;
      }
    }
  }

  // Locks, forks and joins of recordings have stamps of both sides, but for the last one of a
  // thread, which may be unfinished. Where the clocks of the processors are not trusted they have
  // none, and what they order would be lost.
  bool unplaced(const predict::ValueOrder::Item& item) {
    if (item.hi != kTimeMax ||
        !is(item.event, kinds::kLocks | kinds::kDrains | kind_mask(EventKind::kJoin))) {
      return false;
    }
    if (item.event.thread >= unfinished_.size()) {
      unfinished_.resize(item.event.thread + 1);
    }
    const bool again = unfinished_[item.event.thread];
    unfinished_[item.event.thread] = true;
    return again || item.event.kind() == EventKind::kJoin;
  }

  void take_ordered() {
    while (const auto item = order_.next()) {
      put(*item);
    }
  }

  void put(const predict::ValueOrder::Item& item) {
    std::vector<Event>& events = prediction_->trace.events;
    std::vector<uint64_t>& lines = prediction_->lines;
    if (lines.empty() && item.line != events.size()) {
      lines.resize(events.size());
      std::iota(lines.begin(), lines.end(), 0);
    }
    if (!lines.empty() || item.line != events.size()) {
      lines.push_back(item.line);
    }
    // What lies on top of the events is not asked for any more.
    Event event = item.event;
    event.span_or_extra = 0;
    event.has_hi = event.has_read_value = event.has_write_value = 0;
    events.push_back(event);
  }

  EventSource& source_;
  Prediction* prediction_;
  predict::ValueOrder order_;
  std::vector<bool> unfinished_;  // threads
  uint64_t events_ = 0;
};

const char* branches_name(Branches branches) {
  switch (branches) {
    case Branches::kAsRecorded:
      return "as-recorded";
    case Branches::kNone:
      return "none";
    default:
      return "after-every-read";
  }
}

const char* tier_name(Tier tier) {
  return tier == Tier::kSyncPreserving ? "sync-preserving" : "closure";
}

void add_notes(Prediction* prediction) {
  const predict::RaceResult& races = prediction->races;
  const predict::DeadlockResult& deadlocks = prediction->deadlocks;
  const predict::AtomicityResult& atomicity = prediction->atomicity;
  std::vector<std::string>& notes = prediction->notes;
  const auto ended = prediction->ended ? prediction->ended
                     : races.ended     ? races.ended
                     : deadlocks.ended ? deadlocks.ended
                                       : atomicity.ended;
  if (ended) {
    notes.push_back(fmt::format("not everything was looked at: {}", limit_text(*ended)));
  }
  if (races.attempts_bounded) {
    notes.push_back(fmt::format("of some pairs of locations only {} pairs of events were tried",
                                predict::RaceResult::kMaxAttempts));
  }
  if (deadlocks.bounded) {
    notes.push_back("not all circles of lock acquisitions were tried");
  }
  if (atomicity.bounded) {
    notes.push_back("not all accesses of units and between them were tried");
  }
  const uint64_t invalid = races.invalid + deadlocks.invalid + atomicity.invalid;
  if (invalid > 0) {
    notes.push_back(
        fmt::format("internal error: {} reorderings were not valid and not reported", invalid));
  }
  if (prediction->late_releases) {
    notes.push_back(
        "schedules in which a store commits after a lock is released were not looked at");
  }
  if (prediction->late_units) {
    notes.push_back(
        "cycles for which a store commits after the end of its unit were not looked at");
  }
  if (prediction->trace.sampled) {
    notes.push_back("the input is a sample: what is between its events is not known");
  }
  if (prediction->trace.selection.any()) {
    notes.push_back(
        fmt::format("only chosen accesses were recorded ({}): others may decide which "
                    "schedules there are",
                    fmt::join(prediction->trace.selection.names(), ", ")));
  }
  if (races.windowed || deadlocks.windowed || atomicity.windowed) {
    notes.push_back("the input is long: some orders were looked for among the latest events alone");
  }
  if (races.without_witness + deadlocks.without_witness + atomicity.without_witness > 0) {
    notes.push_back(fmt::format(
        "{} witnesses were validated and are in short: raise --witness-events for all of it",
        races.without_witness + deadlocks.without_witness + atomicity.without_witness));
  }
}

ReportedAccess access_of(const Prediction& prediction, uint32_t event) {
  const Trace& trace = prediction.trace;
  return reported_access(prediction.line(event), trace.events[event], trace.symbols,
                         prediction.names);
}

std::string fingerprint_of(const std::vector<ReportedAccess>& accesses) {
  ReportedCycle cycle;
  cycle.of_events = true;
  cycle.accesses = accesses;
  for (size_t at = 0; at < accesses.size(); ++at) {
    ReportedStep step;
    step.from = at;
    step.to = (at + 1) % accesses.size();
    cycle.steps.push_back(step);
  }
  return fingerprint(cycle);
}

// The store was issued before, and this is not right after that.
bool late_commit(const std::vector<uint32_t>& witness, size_t at) {
  return (witness[at] & predict::kCommit) != 0 &&
         (at == 0 || witness[at - 1] != (witness[at] & ~predict::kCommit));
}

// "T1 #0..#4, T2 #5..#9": whose events follow each other. Commits that come late are turns.
std::string schedule_text(const Prediction& prediction, const std::vector<uint32_t>& witness) {
  constexpr size_t kShown = 6;
  const Trace& trace = prediction.trace;
  const auto event = [&](size_t at) { return witness[at] & ~predict::kCommit; };
  std::vector<std::string> turns;
  for (size_t at = 0; at < witness.size();) {
    const ThreadId thread = trace.events[event(at)].thread;
    const bool late = late_commit(witness, at);
    size_t end = at + 1;
    while (!late && end < witness.size() && trace.events[event(end)].thread == thread &&
           !late_commit(witness, end)) {
      ++end;
    }
    const uint64_t first = prediction.line(event(at));
    const uint64_t last = prediction.line(event(end - 1));
    const std::string name =
        reported_access(first, trace.events[event(at)], trace.symbols, {}).thread;
    turns.push_back(late            ? fmt::format("{} commits #{}", name, first)
                    : first == last ? fmt::format("{} #{}", name, first)
                                    : fmt::format("{} #{}..#{}", name, first, last));
    at = end;
  }
  std::string text;
  const size_t skipped = turns.size() > kShown ? turns.size() - kShown : 0;
  if (skipped > 0) {
    text = fmt::format("... {} turns, then ", skipped);
  }
  return text + fmt::format("{}", fmt::join(turns.begin() + static_cast<ptrdiff_t>(skipped),
                                            turns.end(), ", "));
}

// "as in the input T1 up to #4, T2 up to #9, then T1 #7, T2 #12".
std::string brief_text(const Prediction& prediction, const predict::ShortWitness& brief) {
  const auto list = [&](const std::vector<uint32_t>& events) {
    std::vector<std::string> all;
    for (const uint32_t event : events) {
      const ReportedAccess access = access_of(prediction, event);
      all.push_back(fmt::format("{} up to #{}", printable(access.thread), access.index));
    }
    return fmt::format("{}", fmt::join(all, ", "));
  };
  return fmt::format("as in the input {}, then {}", list(brief.last),
                     schedule_text(prediction, brief.tail));
}

std::string accesses_text(const Prediction& prediction, const std::vector<uint32_t>& events,
                          const std::vector<uint32_t>& witness,
                          const predict::ShortWitness& brief = {}) {
  std::string text;
  for (const uint32_t event : events) {
    const ReportedAccess access = access_of(prediction, event);
    text += fmt::format("  {} {}\n", printable(access.thread), access_line(access));
  }
  if (!witness.empty()) {
    text += "  schedule: " + schedule_text(prediction, witness) + "\n";
  } else if (!brief.tail.empty()) {
    text += "  schedule: " + brief_text(prediction, brief) + "\n";
  }
  return text;
}

// As `check` has them.
nlohmann::ordered_json steps_json(const Prediction& prediction,
                                  const std::vector<uint32_t>& witness) {
  auto steps = nlohmann::ordered_json::array();
  for (const uint32_t entry : witness) {
    const uint32_t event = entry & ~predict::kCommit;
    steps.push_back({{entry == event ? "issue" : "commit", prediction.line(event)}});
  }
  return steps;
}

nlohmann::ordered_json entry_json(const Prediction& prediction, const std::vector<uint32_t>& events,
                                  Tier tier, const std::vector<uint32_t>& witness,
                                  const predict::ShortWitness& brief = {}) {
  std::vector<ReportedAccess> accesses;
  auto described = nlohmann::ordered_json::array();
  std::vector<uint64_t> indices;
  std::vector<std::string> locations;
  for (const uint32_t event : events) {
    accesses.push_back(access_of(prediction, event));
    described.push_back(access_json(accesses.back()));
    indices.push_back(accesses.back().index);
    locations.push_back(accesses.back().place.text);
  }
  const auto [first, last] = std::minmax_element(events.begin(), events.end());
  nlohmann::ordered_json entry = {{"events", std::move(indices)},
                                  {"locations", std::move(locations)},
                                  {"accesses", std::move(described)},
                                  {"distance", *last - *first - 1},
                                  {"tier", tier_name(tier)},
                                  {"fingerprint", fingerprint_of(accesses)},
                                  {"witness", nullptr}};
  const auto lines = [&](const std::vector<uint32_t>& order) {
    std::vector<uint64_t> all;
    for (const uint32_t event : order) {
      all.push_back(prediction.line(event));
    }
    return all;
  };
  if (!witness.empty()) {
    entry["witness"] = prediction.asked.store_buffers ? steps_json(prediction, witness)
                                                      : nlohmann::ordered_json(lines(witness));
  } else if (!brief.tail.empty()) {
    entry["short_witness"] = {
        {"last", lines(brief.last)},
        {"tail", prediction.asked.store_buffers ? steps_json(prediction, brief.tail)
                                                : nlohmann::ordered_json(lines(brief.tail))}};
  }
  return entry;
}

// In the order of the cycle: of the unit, of the other thread (once or twice), of the unit.
std::vector<uint32_t> accesses_of(const predict::AtomicityViolation& violation) {
  if (violation.to == violation.from) {
    return {violation.first, violation.to, violation.last};
  }
  return {violation.first, violation.to, violation.from, violation.last};
}

std::string label_of(const Prediction& prediction, const predict::AtomicityViolation& violation) {
  const Interner& labels = prediction.trace.symbols.labels;
  return violation.label < labels.size() ? std::string(unit_label(labels.text(violation.label)))
                                         : "";
}

std::string unit_text(const Prediction& prediction, const predict::AtomicityViolation& violation) {
  const std::string label = label_of(prediction, violation);
  return label.empty() ? "" : " \"" + printable(label) + "\"";
}

const char* verdict_name(const Prediction& prediction) {
  return prediction.found() ? "predicted" : prediction.complete() ? "none" : "inconclusive";
}

// Runs what asks about one kind with a share of what is left of the work, which what takes less
// leaves to the others.
template <typename Kind>
void judge_kind(uint32_t shares, const WorkBounds& bounds, uint64_t used, const Kind& kind) {
  WorkBounds mine = bounds;
  mine.max_work = (bounds.max_work - std::min(used, bounds.max_work)) / shares;
  WorkMeter meter(mine);
  const WorkScope scope(&meter);
  kind();
}

// Deadlocks first: they are few. Races last: they are many.
void judge(Prediction* prediction) {
  const PredictOptions& asked = prediction->asked;
  WorkMeter meter(asked.bounds, asked.stop);
  const WorkScope scope(&meter);
  try {
    predict::Query query(prediction->trace, prediction->branches, {}, asked.store_buffers);
    prediction->late_releases = query.model().releases_late();
    prediction->late_units =
        asked.store_buffers && asked.atomicity &&
        std::any_of(prediction->trace.events.begin(), prediction->trace.events.end(),
                    [](const Event& event) { return event.kind() == EventKind::kUnitBegin; });
    const uint64_t witness_events = asked.race.max_witness_events;
    uint32_t left = (asked.deadlocks ? 1 : 0) + (asked.atomicity ? 1 : 0) + (asked.races ? 1 : 0);
    if (asked.deadlocks) {
      judge_kind(left--, asked.bounds, meter.work(), [&] {
        prediction->deadlocks = predict_deadlocks(query, {true, witness_events});
      });
    }
    if (asked.atomicity) {
      judge_kind(left--, asked.bounds, meter.work(), [&] {
        prediction->atomicity = predict_atomicity(query, {true, witness_events, false});
      });
    }
    if (asked.races) {
      judge_kind(left--, asked.bounds, meter.work(),
                 [&] { prediction->races = predict_races(query, asked.race); });
    }
  } catch (const WorkEnded& ended) {
    prediction->ended = ended.limit();
  }
  prediction->work = meter.work();
}

std::string fingerprint_of_events(const Prediction& prediction,
                                  const std::vector<uint32_t>& events) {
  std::vector<ReportedAccess> accesses;
  for (const uint32_t event : events) {
    accesses.push_back(access_of(prediction, event));
  }
  return fingerprint_of(accesses);
}

}  // namespace

Result<Prediction> predict_input(const std::string& path, InputFormat format,
                                 const PredictOptions& options) {
  SourceOptions how;
  how.format = format;
  how.symbolise = true;
  auto source = open_events(path, how);
  if (!source) {
    return tl::unexpected<Error>(std::move(source.error()));
  }
  return predict_source(**source, options);
}

Result<Prediction> predict_source(EventSource& source, const PredictOptions& options) {
  Prediction prediction;
  prediction.asked = options;
  prediction.input = source.input();
  try {
    const auto whole = Reader(source, &prediction).read();
    if (!whole) {
      return tl::unexpected<Error>(whole.error());
    }
  } catch (const WorkEnded& end) {  // while it waited for the input
    prediction.ended = end.limit();
  }
  prediction.trace.complete = prediction.trace.complete && source.complete();
  prediction.trace.sampled = source.sampled();
  prediction.trace.selection = source.selection();
  prediction.trace.lost_events = source.lost_events();
  prediction.trace.symbols = source.take_symbols();
  prediction.warnings = source.warnings();
  prediction.names = source.names();
  resolve_cancelled_units(prediction.trace, source.may_cancel());
  predict::unite_rapid_threads(prediction.trace);
  prediction.branches = resolved(options.race.branches, prediction.trace);
  if (!prediction.ended) {
    judge(&prediction);
  }
  add_notes(&prediction);
  return prediction;
}

std::string prediction_fingerprint(const Prediction& prediction, const predict::Race& race) {
  return fingerprint_of_events(prediction, {race.first, race.second});
}
std::string prediction_fingerprint(const Prediction& prediction,
                                   const predict::Deadlock& deadlock) {
  return fingerprint_of_events(prediction, deadlock.requests);
}
std::string prediction_fingerprint(const Prediction& prediction,
                                   const predict::AtomicityViolation& violation) {
  return fingerprint_of_events(prediction, accesses_of(violation));
}

namespace {

std::string races_text(const Prediction& prediction) {
  std::string text;
  for (const Race& race : prediction.races.races) {
    text +=
        "race:\n" + accesses_text(prediction, {race.first, race.second}, race.witness, race.brief);
  }
  return text;
}

std::string deadlocks_text(const Prediction& prediction) {
  std::string text;
  for (const predict::Deadlock& deadlock : prediction.deadlocks.deadlocks) {
    const bool lost = deadlock.kind == predict::DeadlockKind::kLostNotification;
    text += lost ? "deadlock, the notification comes before the wait:\n"
                 : "deadlock, each waits for the next:\n";
    if (lost) {
      text += accesses_text(prediction, deadlock.holders, {});
    }
    text += accesses_text(prediction, deadlock.requests, deadlock.witness, deadlock.brief);
  }
  return text;
}

std::string violations_text(const Prediction& prediction) {
  std::string text;
  for (const predict::AtomicityViolation& violation : prediction.atomicity.violations) {
    text += fmt::format("not atomic{}:\n", unit_text(prediction, violation)) +
            accesses_text(prediction, accesses_of(violation), violation.witness, violation.brief);
  }
  return text;
}

}  // namespace

std::string predictions_text(const Prediction& prediction) {
  return races_text(prediction) + deadlocks_text(prediction) + violations_text(prediction);
}

std::string prediction_text(const Prediction& prediction) {
  const predict::RaceResult& races = prediction.races;
  const predict::DeadlockResult& deadlocks = prediction.deadlocks;
  const predict::AtomicityResult& atomicity = prediction.atomicity;
  std::string text = fmt::format("{}: {} (branches {})\n", prediction.input,
                                 verdict_name(prediction), branches_name(prediction.branches));
  if (prediction.asked.races) {
    text += fmt::format("data races: {} ({} pairs of locations asked about, {} refused)\n",
                        races.races.size(), races.candidates, races.refused) +
            races_text(prediction);
  }
  if (prediction.asked.deadlocks) {
    text += fmt::format("deadlocks: {} ({} circles of locations asked about, {} refused)\n",
                        deadlocks.deadlocks.size(), deadlocks.candidates, deadlocks.refused) +
            deadlocks_text(prediction);
  }
  if (prediction.asked.atomicity) {
    text +=
        fmt::format("atomicity violations: {} ({} tuples of locations asked about, {} refused)\n",
                    atomicity.violations.size(), atomicity.candidates, atomicity.refused) +
        violations_text(prediction);
  }
  for (const std::string& note : prediction.notes) {
    text += "note: " + note + "\n";
  }
  return text;
}

nlohmann::ordered_json prediction_json(const std::string& file, const Prediction& prediction) {
  const predict::RaceResult& races = prediction.races;
  const predict::DeadlockResult& deadlocks = prediction.deadlocks;
  auto kinds = nlohmann::ordered_json::array();
  auto race_array = nlohmann::ordered_json::array();
  auto deadlock_array = nlohmann::ordered_json::array();
  auto atomicity_array = nlohmann::ordered_json::array();
  if (prediction.asked.races) {
    kinds.push_back("races");
  }
  if (prediction.asked.deadlocks) {
    kinds.push_back("deadlocks");
  }
  if (prediction.asked.atomicity) {
    kinds.push_back("atomicity");
  }
  for (const Race& race : races.races) {
    race_array.push_back(
        entry_json(prediction, {race.first, race.second}, race.tier, race.witness, race.brief));
  }
  for (const predict::Deadlock& deadlock : deadlocks.deadlocks) {
    auto entry =
        entry_json(prediction, deadlock.requests, deadlock.tier, deadlock.witness, deadlock.brief);
    std::vector<uint64_t> holders;
    for (const uint32_t event : deadlock.holders) {
      holders.push_back(prediction.line(event));
    }
    entry["holders"] = std::move(holders);
    entry["kind"] =
        deadlock.kind == predict::DeadlockKind::kCircle ? "circle" : "lost-notification";
    deadlock_array.push_back(std::move(entry));
  }
  const predict::AtomicityResult& atomicity = prediction.atomicity;
  for (const predict::AtomicityViolation& violation : atomicity.violations) {
    auto entry = entry_json(prediction, accesses_of(violation), violation.tier, violation.witness,
                            violation.brief);
    entry["label"] = label_of(prediction, violation);
    atomicity_array.push_back(std::move(entry));
  }
  nlohmann::ordered_json object = {
      {"file", file},
      {"events", prediction.trace.events.size()},
      {"kinds", std::move(kinds)},
      {"model", prediction.asked.store_buffers ? "tso" : "sc"},
      {"branches", branches_name(prediction.branches)},
      {"verdict", verdict_name(prediction)},
      {"complete", prediction.complete()},
      {"candidates", races.candidates + deadlocks.candidates + atomicity.candidates},
      {"refused", races.refused + deadlocks.refused + atomicity.refused},
      {"races", std::move(race_array)},
      {"deadlocks", std::move(deadlock_array)},
      {"atomicity_violations", std::move(atomicity_array)}};
  if (!prediction.notes.empty()) {
    object["notes"] = prediction.notes;
  }
  return object;
}

}  // namespace tsomon
