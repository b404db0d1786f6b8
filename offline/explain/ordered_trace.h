// One execution of a trace: its events in one order, and which of its units depend on each other.
//
// Source      Theory sections 2 and 3: any set of directed edges without a cycle extends to a total
//             order. The order keeps what is certain of the trace and the orders that a violation
//             has chosen; else it is that of the input.
// Purpose     What root causes are looked for in, and the test whether blocks of code that are
//             atomic forbid an execution: their graph has a cycle.
// Locks       The order of the critical sections of a lock counts only for units that nothing else
//             makes a circle of: what a lock orders says less than what it guards.
// Complexity  O((n + edges) log n) to build, O(n + edges) for a cycle.
// Thread-safety: const access is safe. The trace must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/refinement.h"

namespace tsomon::explain {

struct OrderOptions {
  RelationOptions relation;
  bool values = true;
  uint64_t max_undirected = 20'000'000;
};

class OrderedTrace {
 public:
  // `chosen` orders that a cycle of the trace has; one that contradicts the others is left out.
  // Nothing: the order that the trace states contradicts itself.
  static std::optional<OrderedTrace> make(const Trace& trace, const OrderOptions& options,
                                          const std::vector<std::vector<Edge>>& chosen);

  const Trace& trace() const { return *trace_; }
  const UnitTable& units() const { return units_; }
  const Relation& relation() const { return *relation_; }
  // The place in the order; of two conflicting accesses the lower one took effect first.
  uint32_t place(uint32_t e) const { return place_[e]; }
  bool certainly_before(uint32_t e, uint32_t f) const { return graph_->order.reaches(e, f); }
  // Conflicts whose order the trace left open.
  const std::vector<Edge>& open() const { return graph_->undirected; }
  // An access whose conflicts count: to data, and to locks where these count.
  bool counts(uint32_t e) const;

  // Groups of units that depend on each other in a circle.
  std::vector<std::vector<UnitId>> circles() const;
  // The same question for other classes than units: by event, UnitTable::kNone for a class of its
  // own. `classes`: how many there are.
  bool has_cycle(uint32_t classes, const std::vector<uint32_t>& class_of) const;

  bool complete() const { return graph_->complete; }

 private:
  OrderedTrace() = default;
  void add_conflicts();
  void add_locks(const std::vector<Edge>& of_locks);

  const Trace* trace_ = nullptr;
  UnitTable units_;
  std::unique_ptr<LocationTable> locations_;
  std::unique_ptr<Relation> relation_;
  std::optional<RefinedGraph> graph_;
  std::vector<uint32_t> order_;  // the events
  std::vector<uint32_t> place_;
  std::vector<bool> in_circle_;  // by unit: without locks
  // What is certain, and conflicts in the order; those that follow from others are left out.
  std::vector<Edge> edges_;
};

}  // namespace tsomon::explain
