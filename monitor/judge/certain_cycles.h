// The cycles that the detector has closed, until it is known what an analysis makes of them.
//
// Purpose     Candidates with a cycle of certain orders are violated whatever an analysis says. Of many
//             that are like each other (Told::kEachKind) the first is analysed, for its witness; the
//             others are counted with it. What cannot be analysed is shown by the cycle itself.
// Like        With the same labels, source locations, kinds of accesses and names, all of them: kind_of().
// Memory      A cycle for each kind, and a few words, with Told::kAll a cycle, for each component of
//             units whose candidate has not come.
// Complexity  O(steps of the cycle) for each one, O(components) for a candidate, expected.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "monitor/judge/check_parts.h"
#include "online/detector/detector.h"

namespace tsomon {

class CertainCycles {
 public:
  // Outlive it. Told::kFirst: as many cycles are kept as there are findings.
  CertainCycles(const CheckOptions& options, const Symbols& symbols, FindingKinds* findings,
                CheckReport* report)
      : options_(options), symbols_(symbols), findings_(*findings), report_(*report) {}

  // What is to be done about a candidate with such a cycle.
  enum class Next : uint8_t {
    kAnalyse,
    kWait,     // for what comes of one like it: ask again after that
    kCounted,  // with one like it
  };

  // Reported or repeated by the detector.
  void close(const DetectedCycle& cycle);
  // The component `part` belongs to another one now.
  void join(uint64_t part, uint64_t whole);
  Next next(const DetectedCandidate& candidate);
  // The candidate was analysed, which gave these findings.
  using Taken = TakenFinding;
  void analysed(const DetectedCandidate& candidate, const std::vector<Taken>& taken);
  // Likewise, as a part of everything.
  void resolve(const DetectedCandidate& candidate);
  // The candidate is not analysed, or that does not show it: its cycle does. False: no cycle is known.
  bool show(const DetectedCandidate& candidate);
  // At the end: those whose candidate has not come. `early`: what an analysis that did not come to its end
  // found may be the same; `sure`: such a cycle stands all the same. How many were added.
  uint64_t show_rest(bool early, bool sure);
  // The analysis of everything has reported them.
  void forget();

  bool empty() const { return kinds_.empty() && first_.empty(); }
  bool any_certain() const { return any_certain_; }

 private:
  struct Kind {
    DetectedCycle cycle;            // the first one
    std::optional<size_t> finding;  // in the report
    bool asked = false;             // one is being analysed
    bool each = false;              // that did not show it
  };
  struct Open {
    size_t kind = 0;
    uint64_t begin = 0;
    std::optional<DetectedCycle> cycle;  // Told::kAll
  };

  bool is_told(const DetectedCycle& cycle, bool sure) const;
  void keep_first(const DetectedCycle& cycle);
  void count(const Open& open);
  Open* open_of(const DetectedCandidate& candidate);
  Finding finding_of(const DetectedCycle& cycle) const;

  const CheckOptions& options_;
  const Symbols& symbols_;
  FindingKinds& findings_;
  CheckReport& report_;
  std::vector<DetectedCycle> first_;  // Told::kFirst: one of each component
  std::vector<Kind> kinds_;
  std::unordered_map<std::string, size_t> kind_numbers_;
  std::unordered_map<uint64_t, Open> open_;  // by component
  bool any_certain_ = false;
};

}  // namespace tsomon
