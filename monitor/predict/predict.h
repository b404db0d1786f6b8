// One input of `tsomon predict`, from its bytes to a report.
//
// Purpose     Reads an input, asks offline/predict what could have happened in another schedule of
//             the same run, and puts the answer into words.
// Windows     An input that is longer than a window (window_events) is looked at in several, one
//             after another, each of which begins with the last quarter of the one before. What
//             happened before a window is fixed in its witnesses (offline/predict/window_start.h);
//             a finding is reported once; what needs events of two windows is not found.
// Parts       The windows may be shared out: each part reads the whole input, and merge_parts.h puts the answers together.
// Clean       Nothing is predicted with certainty only where the input lacks nothing and no bound
//             was met: otherwise it is inconclusive.
// Errors      As EventSource. A stop or a bound that is met while reading is reported as such.
// Memory      A window, the model of offline/predict, the witnesses that are kept; of several
//             windows, witnesses in short.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/events/event_source.h"
#include "monitor/findings/basis.h"
#include "monitor/findings/finding_filter.h"
#include "monitor/findings/last_waits.h"
#include "monitor/findings/text_shape.h"
#include "monitor/predict/prediction_part.h"
#include "offline/predict/atomicity.h"
#include "offline/predict/deadlocks.h"
#include "offline/predict/lifetimes.h"
#include "offline/predict/races.h"
#include "tso/model/trace.h"
#include "tso/support/part_choice.h"
#include "tso/support/result.h"

namespace tsomon {

struct ListedJson;

struct PredictOptions {
  bool races = true;
  bool deadlocks = true;
  bool atomicity = true;
  bool uses_after_free = true;
  bool uses_after_destroy = true;
  // TSO: stores may commit late, and witnesses say when each does.
  bool store_buffers = false;
  predict::RaceOptions race;         // its `jobs` are the threads that search
  uint64_t max_events = UINT64_MAX;  // what comes after that many is not looked at
  // Longer inputs are looked at in windows of so many events. At most predict::kMaxEvents.
  uint64_t window_events = predict::kMaxEvents;
  std::optional<PartChoice> part;  // only these windows are looked at
  WorkBounds bounds;               // of all kinds together, for each window; reading has none
  const StopFlag* stop = nullptr;
  FileSearch files;  // of what is recorded
};

struct Prediction {
  std::string input;    // as in messages
  uint64_t events = 0;  // that were looked at
  // Of several windows the trace has those events alone that are named.
  uint64_t windows = 0;
  Trace trace;
  std::vector<uint64_t> lines;  // the event line of each event; empty: its number
  PredictOptions asked;
  predict::Branches branches = predict::Branches::kAuto;  // what was taken
  predict::RaceResult races;
  predict::DeadlockResult deadlocks;
  predict::AtomicityResult atomicity;
  predict::LifetimeResult lifetimes;
  // Who waits for whom at the end of an input that is whole and was read to its end.
  std::vector<StuckThread> stuck;
  // Under TSO: schedules were left out in which a store commits after the release of a lock, and
  // cycles for which it commits after the end of its unit.
  bool late_releases = false;
  bool late_units = false;
  uint64_t work = 0;               // units that it took
  std::optional<WorkLimit> ended;  // before anything was asked about
  std::vector<std::string> notes;  // why it is not complete, and what was left out
  std::vector<std::string> warnings;
  std::vector<Shortfall> shortfalls;  // why finding nothing means nothing
  ReportNames names;
  std::optional<PredictionPart> part;  // of several windows, where not all were to be looked at

  // Forgets what is not reported. How many.
  template <typename Found, typename Condition>
  uint64_t drop_if(std::vector<Found>* found, Dropped why, const Condition& condition);

  bool complete() const {
    return shortfalls.empty() && trace.complete && !trace.sampled && !ended && !late_releases &&
           !late_units && windows == 1 && races.complete() && deadlocks.complete() &&
           atomicity.complete() && lifetimes.complete();
  }
  bool found() const {
    return !stuck.empty() || !races.races.empty() || !deadlocks.deadlocks.empty() ||
           !atomicity.violations.empty() || !lifetimes.after_free.empty() ||
           !lifetimes.after_destroy.empty();
  }
  // Events that a window has in common with the next one.
  uint64_t overlap() const { return asked.window_events / 4; }
  uint64_t line(uint32_t event) const { return lines.empty() ? event : lines[event]; }
};

inline AskedKind kind_of(const predict::Race&) { return AskedKind::kRaces; }
inline AskedKind kind_of(const predict::Deadlock&) { return AskedKind::kDeadlocks; }
inline AskedKind kind_of(const predict::AtomicityViolation&) { return AskedKind::kAtomicity; }
inline AskedKind kind_of(const predict::UseAfterEnd&) { return AskedKind::kLifetimes; }

template <typename Found, typename Condition>
uint64_t Prediction::drop_if(std::vector<Found>* found, Dropped why, const Condition& condition) {
  return std::erase_if(*found, [&](Found& one) {
    const bool dropped = condition(one);
    if (dropped && part) {
      part->dropped.push_back({kind_of(one), one.in, why});
    }
    return dropped;
  });
}

// `path` "-" is standard input.
Result<Prediction> predict_input(const std::string& path, InputFormat format,
                                 const PredictOptions& options);

// Predicts from a source that nothing was read from.
Result<Prediction> predict_source(EventSource& source, const PredictOptions& options);

// What it has found, without counts and notes. `hidden`, here and below, is told of all findings, and says which are
// not shown.
std::string predictions_text(const Prediction& prediction, HiddenFindings* hidden = nullptr,
                             const TextShape& shape = {});
// The fingerprint is made of the places of the events, so it is the same in every run.
std::string prediction_fingerprint(const Prediction& prediction, const predict::Race& race);
std::string prediction_fingerprint(const Prediction& prediction, const predict::Deadlock& deadlock);
std::string prediction_fingerprint(const Prediction& prediction,
                                   const predict::AtomicityViolation& violation);
std::string prediction_fingerprint(const Prediction& prediction, const predict::UseAfterEnd& use);

std::string prediction_text(const Prediction& prediction, HiddenFindings* hidden = nullptr,
                            const TextShape& shape = {});
ListedJson prediction_json(const std::string& file, const Prediction& prediction,
                           HiddenFindings* hidden = nullptr);

}  // namespace tsomon
