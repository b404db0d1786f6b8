// What the checks of whole traces and of streams have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "monitor/judge/check.h"
#include "tso/model/units.h"

namespace tsomon {

// Where violations of a kind are told of as one (Told::kEachKind), which finding that is.
class FindingKinds {
 public:
  FindingKinds(Told told, const Symbols& symbols) : told_(told), symbols_(&symbols) {}

  // Adds it, or counts it in the finding of its kind; which one that is.
  size_t add(Finding&& finding, CheckReport* report);
  // One more like that finding.
  static void repeat(uint64_t begin, size_t finding, CheckReport* report) {
    Violation& violation = report->findings[finding].violation;
    violation.repeats.add(violation.verdict, begin);
  }

 private:
  Told told_;
  const Symbols* symbols_;
  std::unordered_map<std::string, size_t> known_;
};

// Adds what an analysis of (a slice of) the input found.
struct TakenFinding {
  size_t finding = 0;  // of the report
  bool definite = false;
  std::vector<std::pair<ThreadId, uint64_t>> accesses;  // of its cycle, that lead to the next ones
};
std::vector<TakenFinding> add_analysis(Analysis&& analysis, const Trace& trace,
                                       const std::vector<uint64_t>* index, FindingKinds* kinds,
                                       FenceQuestions* fences, CheckReport* report);

// Joins the findings of two analyses of one input, neither of which looked at all: of each kind it keeps those
// of the analysis that counted more. O(findings).
void keep_more(std::vector<Finding>&& others, const Symbols& symbols, CheckReport* report);

// Keeps the input in the report, where that has a use. `read` gives it, if all of it is still known.
void keep_judged(const CheckOptions& options, const std::function<std::optional<Trace>()>& read,
                 CheckReport* report);
uint32_t threads_with_events(const Trace& trace);

enum class Extent : uint8_t { kSlice, kWhole };
// kWhole: of an input as a whole, which may be long; what is decided without the exact search need
// not come from it (offline/check/crossing_units.h).
Result<Analysis> analyse_property(const Trace& trace, const CheckOptions& options,
                                  Extent extent = Extent::kSlice);

}  // namespace tsomon
