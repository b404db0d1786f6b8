// From a loaded trace to a verdict and its report.
//
// Purpose     What `tsomon check` says about one input (docs/interfaces.md), for programs and for
//             people. Event numbers count the events of the input from 0, units and locks included.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/events/address_coverage.h"
#include "monitor/findings/basis.h"
#include "monitor/findings/finding_filter.h"
#include "monitor/findings/reported_cycle.h"
#include "monitor/findings/text_shape.h"
#include "monitor/judge/fence_advice.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"
#include "tso/model/finding.h"
#include "tso/model/property.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"
#include "tso/support/part_choice.h"

namespace tsomon {

class SearchedGroups;

// "auto", "annotated" or "objects".
std::optional<SetChoice> set_choice(std::string_view name);

struct CheckOptions {
  Property property = Property::kSerializability;
  AnalysisOptions analysis;           // its `property` is set from the one above
  SetChoice sets = SetChoice::kAuto;  // kAtomicSets
  // Of a stream: events that are kept, so that what is flagged can be searched.
  uint64_t history_events = 1ULL << 20;
  // Events times threads at once up to which it is analysed as a whole: 8 bytes each of memory.
  uint64_t max_whole = 1ULL << 28;
  int64_t clock_margin = 0;                    // as SourceOptions::clock_margin
  BasisSource source = BasisSource::kWritten;  // of a whole trace
  unsigned jobs = 0;             // threads; 0: as many as there are processors and work for
  Progress* progress = nullptr;  // told what is read and searched, if there is one
  // Of a stream whose candidates are handed out (group_share.h).
  std::optional<PartChoice> part;                  // only these groups are searched
  std::shared_ptr<SearchedGroups> found;           // by this part; what it reports else is not all
  std::shared_ptr<const SearchedGroups> searched;  // by parts

  size_t most_findings() const {
    return analysis.told == Told::kFirst ? analysis.max_findings : SIZE_MAX;
  }
};

// The input as it was judged, for asking what a change of it would leave (monitor/explain).
struct JudgedInput {
  Trace trace;  // numbered as reports number events; without symbols
  AnalysisOptions analysis;
};
inline constexpr uint64_t kMostJudgedKept = 100'000;  // events

struct CheckReport : Outcome<Finding> {
  Property property = Property::kSerializability;
  Semantics semantics = Semantics::kExact;
  Selection selection;  // what the verdict is about
  uint64_t events = 0;
  uint32_t threads = 0;  // that have events
  uint64_t units = 0;
  uint64_t lost_events = 0;
  uint64_t components = 0;  // groups of units that had to be searched
  uint64_t open_edges = 0;  // undirected edges left after refinement, where it was searched
  // Of the groups of units that are violated or not decided; the first kMaxFenceAdvice.
  std::vector<FenceAdvice> unfenced;
  std::optional<AddressCoverage> coverage;
  std::optional<Basis> basis;  // what it rests on
  // nullptr: nothing was found, not all of it was judged, it is too long, or nobody asks.
  std::shared_ptr<const JudgedInput> judged;

  // Why finding nothing means nothing, if nothing was found and nothing was missing.
  std::vector<Shortfall> shortfalls() const {
    return basis && Outcome::verdict() == Verdict::kClean
               ? tsomon::shortfalls(*basis, property != Property::kRobustness)
               : std::vector<Shortfall>();
  }
  Verdict verdict() const {
    return shortfalls().empty() ? Outcome::verdict() : Verdict::kInconclusive;
  }
  const char* verdict_name() const { return tsomon::verdict_name(verdict(), property); }
};

// A whole trace, analysed at once.
Result<CheckReport> check_trace(const Trace& trace, const CheckOptions& options);

// What reports say where the user chose what is in the trace; empty: there was no choice.
std::string selection_text(const Selection& selection);

// How the findings of a report are named and how many of them it shows.
struct ReportChoice {
  ReportNames names;
  bool all = false;  // each violation by itself; otherwise those with one fingerprint are one
  HiddenFindings* hidden = nullptr;  // is told of all findings, and says which are not shown
  TextShape shape = {};
};

// One object.
nlohmann::ordered_json report_json(const std::string& input, const Symbols& symbols,
                                   const CheckReport& report, const ReportChoice& choice = {});

// Several lines: verdict, what it rests on, cycle with source locations, witness.
std::string report_text(const std::string& input, const Symbols& symbols, const CheckReport& report,
                        const ReportChoice& choice = {});

}  // namespace tsomon
