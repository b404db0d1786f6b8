// Executions with visible commits, made from an order of events.
//
// Source      Theory sections 1, 5.1 and 8.
// Purpose     A violation is shown as an execution: issues and commits in one sequence that the
//             abstract machine accepts. realise() finds one in which every pair of conflicting
//             events is ordered as asked and every directed edge of the trace is kept.
// Complexity  O(w^2) for a window of w events.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tso/event_graph.h"
#include "tso/relation.h"

namespace tsomon {

struct Step {
  bool commit = false;  // false: the event is issued (loads and locked operations: performed)
  uint32_t event = 0;
  bool operator==(const Step&) const = default;
};

// kBefore: the first event comes before the second; kAfter; kNone: either order will do. Asked for
// pairs with an undirected edge.
using OrientationOracle = std::function<Order(uint32_t, uint32_t)>;

// Whether e comes before f, by the trace or, where it leaves that open, by the orientation.
bool comes_before(const Relation& relation, const OrientationOracle& before, uint32_t e,
                  uint32_t f);

// Either order, or both.
struct EitherOrder {
  Edge a;
  Edge b;
};

// The executions of a window, step by step: every order of the nodes that keeps `edges` and one
// edge of each pair in `either`. Node 2i issues event i of the window, 2i+1 commits it where that
// is another step.
struct StepOrder {
  // One of the alternatives, and all edges of that.
  using Alternatives = std::vector<std::vector<Edge>>;

  uint32_t nodes = 0;
  std::vector<Edge> edges;
  std::vector<EitherOrder> either;
  // What makes the first event of an undirected pair come before the second, and after it. In an
  // order of all nodes exactly one of them is so.
  std::vector<Alternatives> before;
  std::vector<Alternatives> after;
};

// Under a partial orientation (kNone: open), for a window as realise() takes it; `open` are pairs
// of its events.
StepOrder step_order(const Relation& relation, const std::vector<uint32_t>& window,
                     const OrientationOracle& before, const std::vector<Edge>& open);

// `window`: events in trace order, closed under Relation::source. Nothing when no execution orders
// them so (possible only under the paper's relation, theory section 5.1).
std::optional<std::vector<Step>> realise(const Relation& relation,
                                         const std::vector<uint32_t>& window,
                                         const OrientationOracle& before);

}  // namespace tsomon
