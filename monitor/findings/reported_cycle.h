// A violation as every report shows it: in text and in JSON, of `check`, `run`, `attach` and the
// embedded monitor.
//
// Purpose     The one place that puts a finding into words. Who found it fills a ReportedCycle,
//             with names as they came in: text (cycle_text.h) escapes them
//             (tso/support/printable.h), JSON does not. JSON has all, but for the accesses of a unit
//             beyond kMaxAccesses.
// Fingerprint The same for the same cycle of places, whatever unit it begins with, in every run and
//             on every machine. A place is (build-id, function, line) of code; without a line the
//             build-id and the text of the location. In text traces it is the unit's label, the
//             source location and the kind of the access, and the name of what is accessed.
//             Addresses, values, threads, event numbers and the verdict are no part of it.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/process/heap_objects.h"
#include "monitor/process/location_texts.h"
#include "monitor/process/symbols.h"
#include "tso/model/finding.h"
#include "tso/model/trace.h"

namespace tsomon {

// What a report can call things. Each may be absent.
struct ReportNames {
  // Of a source location as the symbols have it.
  std::function<SourcePlace(const std::string& location)> place;
  // Of the data at an address; empty: it has no name.
  std::function<std::string(uint64_t address)> variable;
  // The calls that may have led from one place to another one.
  std::function<SourceCalls(const SourcePlace& from, const SourcePlace& to)> calls;
  // The line of the source; empty: it is not here.
  std::function<std::string(const SourcePlace& place)> source;
  std::shared_ptr<const HeapObjects> objects;
};

// Of a recording whose locations were symbolised; without one, none.
ReportNames names_of(std::shared_ptr<LocationTexts> texts);
// Of files that are here.
std::function<std::string(const SourcePlace& place)> source_lines();

struct ReportedAccess {
  uint64_t index = 0;  // of the event in the input
  ThreadId thread_id = 0;
  std::string thread;
  EventKind kind = EventKind::kRead;
  const char* operation = "load";   // its name
  std::string operand;              // as in the trace: "x", "0x7f10+8", a thread; empty for a fence
  std::string variable;             // "counter+0x8"; empty: it has no name
  std::optional<uint64_t> address;  // absent in text traces with names, and for threads and fences
  uint32_t size = 0;                // in bytes; 0: not known, as of a lock
  std::optional<uint64_t> read;
  std::optional<uint64_t> written;
  std::optional<std::pair<int64_t, int64_t>> stamps;  // between which it happened
  SourcePlace place;                                  // its text may be empty
  SourceCalls calls;                                  // from where its unit begins
  std::string source;  // its line, of those by which the cycle comes in and goes out
};

ReportedAccess reported_access(uint64_t index, const Event& event, const Symbols& symbols,
                               const ReportNames& names);

// What the event, which is of that block, read and wrote. What locks have beside them is no value.
void add_values(const EventBlock& block, const Event& event, ReportedAccess* access);
// The interval of the event, which is of that block. In a trace without stamps it is the event's place, and none is added.
void add_stamps(const EventBlock& block, const Event& event, ReportedAccess* access);

// A unit on the cycle, or an event of a cycle of events, and the order that leads to the next one.
struct ReportedStep {
  std::string thread;
  std::string label;     // empty: no label, or an event of its own
  bool is_unit = false;  // false: an event of its own
  bool finished = true;  // its end was seen
  uint64_t first = 0;    // events of the input
  uint64_t last = 0;
  std::vector<size_t> accesses;        // those that are shown, in order
  uint64_t omitted = 0;                // more of the unit, which are not
  std::vector<std::string> locations;  // in the source, of all of them, each once
  size_t from = 0;                     // the two accesses behind the order
  size_t to = 0;                       // of the next step
  EdgeKind edge = EdgeKind::kConflict;
};

struct ReportedCycle {
  static constexpr uint64_t kMaxAccesses = 1000;  // of one unit

  struct WitnessStep {
    size_t access = 0;
    bool commit = false;
  };

  bool of_events = false;                // robustness: a cycle of events, not of units
  std::vector<ReportedAccess> accesses;  // what the rest refers to, each once, in trace order
  std::vector<ReportedStep> steps;       // ends where it begins
  std::vector<WitnessStep> witness;      // may be empty
  std::vector<size_t> others;            // accesses of the witness that no step lists
};

std::string fingerprint(const ReportedCycle& cycle);
// Of accesses that are no cycle of units: the same, wherever they begin.
std::string fingerprint(const std::vector<ReportedAccess>& accesses);

// Adds `cycle`, `witness`, `accesses` and `fingerprint`.
void add_cycle_json(const ReportedCycle& cycle, nlohmann::ordered_json* object);
nlohmann::ordered_json access_json(const ReportedAccess& access);

}  // namespace tsomon
