// Ground truth for verdicts: all executions of the traces that count as the same (theory section
// 5.1, the class [τ]), enumerated step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "tests/tso/naive_checker.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/order/execution.h"

namespace tsomon::testing {

class Executions {
 public:
  Executions(const Trace& trace, const RelationOptions& options);

  // Calls `visit` with every execution of [τ]; false when there are more than `max_steps` steps.
  // With intervals the class is that of all traces that the intervals allow.
  bool for_each(uint64_t max_steps,
                const std::function<void(const std::vector<Step>&)>& visit) const;

  // The execution's conflict graph (for robustness: its events with program order) has a cycle.
  bool violates(Property property, const std::vector<Step>& execution) const;

  // Of each event: whether it, or its unit, is on such a cycle.
  std::vector<bool> violated(Property property, const std::vector<Step>& execution) const;

  // Every load returns its recorded value; memory starts at 0. Sizes must not be mixed.
  bool has_recorded_values(const std::vector<Step>& execution) const;

  // What violated() is of all executions; nothing when there are too many or none.
  using Violated = std::set<std::vector<bool>>;
  std::optional<Violated> all_violated(Property property, bool values, uint64_t max_steps) const;
  // None, some or all of them are bad.
  static Verdict verdict(const Violated& violated);
  std::optional<Verdict> verdict(Property property, bool values, uint64_t max_steps) const;

 private:
  friend class Enumerator;
  struct Timeline;
  Timeline timeline(const std::vector<Step>& execution) const;
  bool is_store(uint32_t e) const;
  bool same_location(uint32_t e, uint32_t f) const;

  const Trace& trace_;
  RelationOptions options_;
  std::vector<uint32_t> units_;  // of each event
  NaiveChecker naive_;
  std::vector<NaiveChecker::Section> sections_;
  std::vector<uint32_t> nodes_;
  std::vector<std::vector<Order>> order_;  // by position in nodes_
};

}  // namespace tsomon::testing
