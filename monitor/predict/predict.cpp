#include "monitor/predict/predict.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/happened_deadlock.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "monitor/predict/window_findings.h"
#include "monitor/predict/window_reader.h"
#include "offline/predict/rapid_threads.h"
#include "tso/model/cancelled_units.h"
#include "tso/model/channels.h"

namespace tsomon {
namespace {

void add_notes(Prediction* prediction) {
  const predict::RaceResult& races = prediction->races;
  const predict::DeadlockResult& deadlocks = prediction->deadlocks;
  const predict::AtomicityResult& atomicity = prediction->atomicity;
  const predict::LifetimeResult& lifetimes = prediction->lifetimes;
  std::vector<std::string>& notes = prediction->notes;
  const auto ended = prediction->ended ? prediction->ended
                     : races.ended     ? races.ended
                     : deadlocks.ended ? deadlocks.ended
                     : lifetimes.ended ? lifetimes.ended
                                       : atomicity.ended;
  if (ended) {
    notes.push_back(fmt::format("not everything was looked at: {}", limit_text(*ended)));
  }
  if (races.bounded) {
    notes.push_back(fmt::format("of some pairs of locations only {} pairs of events were tried",
                                predict::RaceResult::kMaxAttempts));
  }
  if (deadlocks.bounded) {
    notes.push_back("not all circles of lock acquisitions were tried");
  }
  if (lifetimes.bounded) {
    notes.push_back(
        fmt::format("of some pairs of an end and a use only {} pairs of events were tried",
                    predict::LifetimeResult::kMaxAttempts));
  }
  if (atomicity.bounded) {
    notes.push_back("not all accesses of units and between them were tried");
  }
  if (prediction->windows > 1) {
    notes.push_back(fmt::format(
        "the input was looked at in {} windows of {} events, each of which begins with the last {} "
        "of the one before: what needs events of two windows was not looked at",
        prediction->windows, prediction->asked.window_events, prediction->overlap()));
  }
  const uint64_t invalid =
      races.invalid + deadlocks.invalid + atomicity.invalid + lifetimes.invalid;
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
  if (prediction->asked.part && prediction->windows == 1 && !prediction->asked.part->has(0)) {
    notes.push_back("the input is one window, which is another part's");
    prediction->trace.complete = false;
  }
  if (races.windowed || deadlocks.windowed || atomicity.windowed || lifetimes.windowed) {
    notes.push_back("the input is long: some orders were looked for among the latest events alone");
  }
  const uint64_t in_short = races.without_witness + deadlocks.without_witness +
                            atomicity.without_witness + lifetimes.without_witness;
  if (prediction->windows == 1 && in_short > 0) {
    notes.push_back(fmt::format(
        "{} witnesses were validated and are in short: raise --witness-events for all of it",
        in_short));
  }
}

// A notification that comes in what was not looked at would not be lost.
void drop_lost(Prediction* prediction) {
  predict::DeadlockResult& deadlocks = prediction->deadlocks;
  const uint64_t dropped = prediction->drop_if(
      &deadlocks.deadlocks, Dropped::kRefused,
      [](const auto& one) { return one.kind == predict::DeadlockKind::kLostNotification; });
  deadlocks.refused += dropped;
  if (dropped > 0) {
    prediction->notes.push_back(
        "notifications that may be lost are not reported: others may come in what was not looked "
        "at");
  }
}

// Shared libraries that are not instrumented: of these calls are recorded, but no access.
class UnseenLibraries {
 public:
  // `accessing`: locations with loads or stores, of all windows.
  UnseenLibraries(const Prediction& prediction, const std::unordered_set<uint32_t>& accessing)
      : prediction_(prediction), accessing_(accessing) {}

  bool has(uint32_t event) {
    const std::string& module = module_of(prediction_.trace.events[event].location);
    return module.find(".so") != std::string::npos && !is_seen(module);
  }

 private:
  const std::string& module_of(uint32_t location) {
    const auto [found, is_new] = modules_.try_emplace(location);
    if (is_new && location != Event::kNoLocation && prediction_.names.place) {
      found->second =
          prediction_.names.place(prediction_.trace.symbols.location_text(location)).module;
    }
    return found->second;
  }

  bool is_seen(const std::string& module) {
    if (!looked_) {
      looked_ = true;
      for (const uint32_t location : accessing_) {
        seen_.insert(module_of(location));
      }
    }
    return seen_.contains(module);
  }

  const Prediction& prediction_;
  const std::unordered_set<uint32_t>& accessing_;
  std::unordered_map<uint32_t, std::string> modules_;  // by location
  std::set<std::string> seen_;
  bool looked_ = false;
};

// What a library that is not instrumented looks at before its calls is not recorded: whether others
// come, whether a lock is there already or is still used.
void drop_unseen(const std::unordered_set<uint32_t>& accessing, Prediction* prediction) {
  UnseenLibraries libraries(*prediction, accessing);
  const auto in_library = [&](uint32_t event) { return libraries.has(event); };
  const uint64_t lost = prediction->drop_if(
      &prediction->deadlocks.deadlocks, Dropped::kRefused, [&](const auto& one) {
        return one.kind == predict::DeadlockKind::kLostNotification && !one.looked &&
               in_library(one.requests.front());
      });
  prediction->deadlocks.refused += lost;
  if (lost > 0) {
    prediction->notes.push_back(
        "notifications that may be lost are not reported where a library waits: what it looks at "
        "is not recorded");
  }
  const auto is_made = [&](uint32_t event) { return lock_begins(prediction->trace.events[event]); };
  const uint64_t races =
      prediction->drop_if(&prediction->races.races, Dropped::kRefused, [&](const auto& race) {
        return (is_made(race.first) || is_made(race.second)) && in_library(race.first) &&
               in_library(race.second);
      });
  prediction->races.refused += races;
  const auto drop_uses = [&](std::vector<predict::UseAfterEnd>* all) {
    return prediction->drop_if(all, Dropped::kRefused, [&](const auto& use) {
      return !use.happened && in_library(use.end) && in_library(use.use);
    });
  };
  const uint64_t uses = drop_uses(&prediction->lifetimes.after_destroy) +
                        drop_uses(&prediction->lifetimes.after_free);
  prediction->lifetimes.refused += uses;
  if (races + uses > 0) {
    prediction->notes.push_back(
        "uses of locks and memory before a library makes them and after it ends them are not "
        "reported where the uses are its own: what it looks at is not recorded");
  }
}

// Libraries whose locks, queues or barriers are their own: they order threads without a call that is
// recorded.
void note_libraries(const std::vector<capture::Module>& modules, Prediction* prediction) {
  constexpr std::array<std::string_view, 6> kOwnLocks = {
      "libiomp5.so",   "libtbb.so",     "libglib-2.0.so",
      "libQt5Core.so", "libQt6Core.so", "libabsl_synchronization.so"};
  std::set<std::string> found;
  for (const capture::Module& module : modules) {
    const std::string_view name =
        std::string_view(module.path).substr(module.path.find_last_of('/') + 1);
    if (std::any_of(kOwnLocks.begin(), kOwnLocks.end(),
                    [&](std::string_view one) { return name.starts_with(one); })) {
      found.insert(std::string(name));
    }
  }
  if (!found.empty() && prediction->found()) {
    prediction->notes.push_back(
        fmt::format("{} may order threads in ways that are not recorded: what is predicted may be "
                    "impossible",
                    fmt::join(found, ", ")));
  }
}

// What orders the threads may be missing.
void keep_nothing(Prediction* prediction, const std::string& why) {
  const auto drop = [&](auto* all) {
    return prediction->drop_if(all, Dropped::kNotCounted, [](const auto&) { return true; });
  };
  const uint64_t found = drop(&prediction->races.races) + drop(&prediction->deadlocks.deadlocks) +
                         drop(&prediction->atomicity.violations) +
                         drop(&prediction->lifetimes.after_free) +
                         drop(&prediction->lifetimes.after_destroy);
  if (prediction->part) {
    prediction->part->not_counted = why;
  }
  if (found > 0) {
    prediction->notes.push_back(not_counted_note(found, why));
  }
}

// Runs what asks about one kind with a share of what is left of the work, which what takes less
// leaves to the others.
template <typename Kind>
void judge_kind(uint32_t shares, const WorkBounds& bounds, uint64_t used, const Kind& kind) {
  WorkBounds mine = bounds;
  mine.max_work = (bounds.max_work - std::min(used, bounds.max_work)) / shares;
  WorkMeter meter(mine);
  const WorkScope scope(&meter);
  try {
    kind();
  } catch (const std::bad_alloc&) {
    if (meter.over_bytes()) {
      throw WorkEnded(WorkLimit::kMemory);
    }
    throw;  // the machine has no more
  }
}

// Memory of a window, where allocations are counted. Programs need a few hundred bytes an event; what
// grows faster is clocks, with the threads, and what is held, with the locks that are held at once.
constexpr WorkBudget kMemory{UINT64_MAX, 0, uint64_t{512} << 20, 1024};

// Deadlocks first: they are few. Races last: they are many.
void judge(const Trace& trace, uint32_t carried, const predict::KnownValues& values,
           AskedOfKinds* places, Prediction* prediction) {
  const PredictOptions& asked = prediction->asked;
  WorkBounds bounds = asked.bounds;
  bounds.max_bytes = std::min(bounds.max_bytes, kMemory.of(trace.events.size()).max_bytes);
  WorkMeter meter(bounds, asked.stop);
  const WorkScope scope(&meter);
  try {
    predict::Query query(trace, prediction->branches, {}, asked.store_buffers, carried);
    prediction->late_releases = query.model().releases_late();
    prediction->late_units =
        asked.store_buffers && asked.atomicity &&
        std::any_of(trace.events.begin(), trace.events.end(),
                    [](const Event& event) { return event.kind() == EventKind::kUnitBegin; });
    const unsigned jobs = asked.race.jobs;
    uint32_t left = (asked.deadlocks ? 1 : 0) + (asked.atomicity ? 1 : 0) + (asked.races ? 1 : 0) +
                    (asked.uses_after_free || asked.uses_after_destroy ? 1 : 0);
    const uint64_t witness_events = asked.race.max_witness_events / std::max(left, 1U);
    if (asked.deadlocks) {
      judge_kind(left--, bounds, meter.work(), [&] {
        prediction->deadlocks = predict_deadlocks(
            query, {true, witness_events, jobs, places != nullptr ? &places->deadlocks : nullptr});
      });
    }
    if (asked.uses_after_free || asked.uses_after_destroy) {
      judge_kind(left--, bounds, meter.work(), [&] {
        prediction->lifetimes = predict_lifetimes(
            query, {asked.uses_after_free, asked.uses_after_destroy, true, witness_events, jobs,
                    places != nullptr ? &places->lifetimes : nullptr});
      });
    }
    if (asked.atomicity) {
      judge_kind(left--, bounds, meter.work(), [&] {
        prediction->atomicity =
            predict_atomicity(query, {true, witness_events, false, jobs,
                                      places != nullptr ? &places->violations : nullptr, &values});
      });
    }
    if (asked.races) {
      predict::RaceOptions race = asked.race;
      race.max_witness_events = witness_events / 2;
      race.asked = places != nullptr ? &places->races : nullptr;
      judge_kind(left--, bounds, meter.work(), [&] {
        prediction->races = predict_races(query, race);
        // Uses that are asked about by themselves are not told twice.
        predict_lifetime_races(query,
                               {!asked.uses_after_free, !asked.uses_after_destroy, true,
                                race.max_witness_events, jobs, race.asked},
                               &prediction->races);
      });
    }
  } catch (const WorkEnded& ended) {
    prediction->ended = ended.limit();
  } catch (const std::bad_alloc&) {
    if (!meter.over_bytes()) {
      throw;  // the machine has no more
    }
    prediction->ended = WorkLimit::kMemory;
  }
  prediction->work = meter.work();
}

// `last`: no events come after the window. Where there are, a unit that is open may be about to be
// cancelled. What is not chosen is not asked about, and leaves the next window as if it had been.
void judge_window(WindowReader& reader, EventSource& source, bool last, bool chosen,
                  AskedOfKinds* places, Prediction* part) {
  Trace& window = reader.window();
  resolve_cancelled_units(window, !last || source.may_cancel());
  const auto renamed = predict::unite_rapid_threads(window, source.symbols().threads);
  part->branches = resolved(part->asked.race.branches, window);
  if (!source.knows_atomics()) {
    predict::take_exchanged_for_atomic(window.events);
  }
  if (chosen) {
    judge(window, reader.carried(), reader.values(), places, part);
  }
  if (last) {
    return;
  }
  // The next window decides that itself.
  for (const auto& [event, address] : renamed) {
    window.events[event].address = address;
  }
  for (Event& event : window.events) {
    if (event.kind() == kCancelledBegin) {
      event.set_kind(EventKind::kUnitBegin);
    }
  }
}

// The next window. False: there is no other one after it.
Result<bool> fill(WindowReader& reader, Prediction* prediction) {
  const PredictOptions& asked = prediction->asked;
  const uint64_t room = asked.max_events - std::min(asked.max_events, reader.read());
  const uint64_t left = asked.window_events - std::min(asked.window_events, reader.own());
  if (auto read = reader.fill(reader.own() + std::min(room, left)); !read) {
    return tl::unexpected<Error>(std::move(read.error()));
  }
  auto more = reader.more();
  if (more && *more && reader.read() >= asked.max_events) {
    prediction->notes.push_back(
        fmt::format("only the first {} events were looked at", reader.read()));
    prediction->trace.complete = false;
    return false;
  }
  return more;
}

bool stopped(const Prediction& part) {
  return part.ended == WorkLimit::kStopped || part.races.ended == WorkLimit::kStopped ||
         part.deadlocks.ended == WorkLimit::kStopped ||
         part.atomicity.ended == WorkLimit::kStopped || part.lifetimes.ended == WorkLimit::kStopped;
}

// Looks at one window after another. An input that is one window keeps its events.
Result<void> predict_windows(WindowReader& reader, EventSource& source, Prediction* prediction) {
  WindowFindings findings;
  const PredictOptions& asked = prediction->asked;
  try {
    for (bool more = true; more;) {
      auto filled = fill(reader, prediction);
      if (!filled) {
        return tl::unexpected<Error>(std::move(filled.error()));
      }
      more = *filled;
      const bool chosen = !asked.part || asked.part->has(prediction->windows);
      if (!more && prediction->windows == 0) {
        judge_window(reader, source, reader.at_end(), chosen, nullptr, prediction);
        break;
      }
      findings.begin_window(prediction->windows);
      ++prediction->windows;
      Prediction part;
      part.asked = asked;
      part.asked.race.max_witness_events = 0;
      judge_window(reader, source, reader.at_end(), chosen, &findings.asked(), &part);
      more = more && !stopped(part);
      findings.add(std::move(part), reader);
      if (more) {
        reader.advance(prediction->overlap());
      }
    }
  } catch (const WorkEnded& end) {  // while it waited for the input
    prediction->ended = end.limit();
  }
  prediction->events = reader.read();
  if (prediction->windows > 0) {
    if (asked.part) {
      prediction->part.emplace();
    }
    findings.finish(reader.all(), source.knows_atomics(), prediction);
    return {};
  }
  prediction->windows = 1;
  prediction->lines = reader.take_lines();
  static_cast<EventBlock&>(prediction->trace) = std::move(reader.window());
  prediction->branches = resolved(prediction->asked.race.branches, prediction->trace);
  return {};
}

}  // namespace

Result<Prediction> predict_input(const std::string& path, InputFormat format,
                                 const PredictOptions& options) {
  SourceOptions how;
  how.format = format;
  how.symbolise = true;
  how.files = options.files;
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
  WindowReader reader(source, options.atomicity);
  if (auto whole = predict_windows(reader, source, &prediction); !whole) {
    return tl::unexpected<Error>(std::move(whole.error()));
  }
  if (reader.waits().two_holders() && source.basis() == BasisSource::kWritten) {
    Error error = two_holders_error(*reader.waits().two_holders(), source.symbols());
    error.input = prediction.input;
    return tl::unexpected<Error>(std::move(error));
  }
  if (reader.at_end() && source.complete() && !source.sampled() && !reader.unplaced()) {
    prediction.stuck = reader.waits().stuck();
  }
  if (reader.unplaced()) {
    prediction.notes.push_back(
        fmt::format("the time stamps order nothing from event {} on: only what comes before was "
                    "looked at",
                    *reader.unplaced()));
  }
  prediction.trace.complete = prediction.trace.complete && !reader.unplaced() && source.complete();
  prediction.trace.sampled = source.sampled();
  prediction.trace.selection = source.selection();
  prediction.trace.lost_events = source.lost_events();
  prediction.trace.symbols = source.take_symbols();
  prediction.warnings = source.warnings();
  prediction.names = source.names();
  if (prediction.events == 0 && reader.at_end()) {
    Basis nothing;
    nothing.source = source.basis();
    prediction.shortfalls = shortfalls(nothing, false);
  }
  if (!reader.at_end() || !prediction.trace.complete) {
    drop_lost(&prediction);
  }
  if (const std::string why = source.other_writers(); !why.empty()) {
    prediction.notes.push_back(why);
    prediction.trace.complete = false;
  }
  if (const std::string why = source.nothing_counts(); !why.empty()) {
    keep_nothing(&prediction, why);
  } else if (source.damage() != Damage::kNone) {
    keep_nothing(&prediction, "a lock or a hand-over may be missing that orders them");
  }
  drop_unseen(reader.accessing(), &prediction);
  add_notes(&prediction);
  note_libraries(source.modules(), &prediction);
  return prediction;
}

}  // namespace tsomon
