// Events in, findings out, while the events arrive: the detector, its windows judged, in words.
//
// Purpose     What `tsomon run` and embedded monitors report. The caller orders the events
//             (EventMerge, StreamMerger) and owns the symbols, which may grow between calls.
// Findings    A cycle of certain orders is reported by the event that closes it. A window of units
//             that only some executions violate is judged by analyse_exactly() when it can change
//             no more, and what is not definite then once more, when some thousand events have
//             come that may tell more, or none comes. Findings with the same labels and source
//             locations are reported once and counted.
// Verdict     As `tsomon check`: kInconclusive when nothing was found and something was missing:
//             late or lost events, windows that could not be judged.
// Complexity  That of Detector; a window costs what analyse_exactly() costs within
//             WatchOptions::analysis, all windows together what monitor/window_bounds.h allows;
//             those beyond that are not judged.
// Misses      What Detector misses. The order of findings is not that of their events.
// Thread-safety: none; the callback runs inside add() and finish() and must not call the watch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "online/detector.h"
#include "online/event_merge.h"
#include "tso/analysis.h"
#include "tso/trace.h"

namespace tsomon {

struct WatchOptions {
  WatchOptions();
  DetectorOptions detector;
  AnalysisOptions analysis;  // of windows
  // Text of a source location as the symbols have it; absent: as it is.
  std::function<std::string(const std::string&)> locate;
  // Asked before each window is judged: true, and it is not (WatchSummary::unjudged). Absent:
  // never.
  std::function<bool()> stop;
};

struct FoundAccess {
  uint64_t index = 0;  // of the event in the input
  std::string operation;
  std::string location;  // may be empty
};

// A unit on the cycle, and the order that leads to the next one.
struct FoundStep {
  std::string thread;
  std::string label;  // empty: no label, or an event of its own
  bool is_unit = false;
  uint64_t first = 0;
  uint64_t last = 0;
  FoundAccess from;
  FoundAccess to;
  std::string edge;  // "program-order", "conflict", "implied", "reordering", "thread"
};

struct Found {
  uint64_t number = 0;  // from 1
  bool definite = false;
  std::vector<FoundStep> cycle;
  struct WitnessStep {
    uint64_t event = 0;
    bool commit = false;
  };
  std::vector<WitnessStep> witness;  // only of what a window's analysis found
  // Units of the window that do not end fenced, one entry for each label and source location, as
  // `tsomon check` reports them: in JSON, and as a line. Empty for a cycle of certain orders.
  struct Unfenced {
    nlohmann::ordered_json json;
    std::string line;
  };
  std::vector<Unfenced> unfenced;

  nlohmann::ordered_json json() const;
  std::string text() const;  // several lines
};

struct WatchSummary {
  Violations found;     // different ones
  Notes notes;          // why it is not complete
  Selection selection;  // what the verdict is about; filled in by who knows it
  uint64_t events = 0;
  uint32_t threads = 0;
  uint64_t occurrences = 0;  // all
  uint64_t windows = 0;      // that had to be judged
  uint64_t unjudged = 0;     // ... and could not be, or not whole
  uint64_t losses = 0;       // places where events are missing
  uint64_t lost_events = 0;  // as far as their number is known
  DetectorStatistics detector;

  bool complete() const { return notes.complete(); }
  Verdict verdict() const { return verdict_of(found, complete()); }
};

class Watch {
 public:
  using Callback = std::function<void(const Found&)>;

  Watch(const Symbols& symbols, WatchOptions options, Callback callback);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void add(const EventBlock& block);
  void lost(const EventLoss& loss);
  // Something is missing that is not an event of one place.
  void incomplete();
  // Nothing has come for a while: what was put off until more is known is judged by what is.
  void idle();
  void finish();

  WatchSummary summary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
