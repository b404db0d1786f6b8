// What a search over a component moves in: nodes whose orders are its executions, and what the open
// edges mean in them.
//
// Purpose     Two views of one problem. With OrientationProblem::steps the nodes are issues and
//             commits, and every order of them that the model allows is an execution: nothing has
//             to be found out afterwards. Without, the nodes are the events, and forwarding constraints and values
//             (theory section 5) stand for the executions.
//             Nodes that no open edge and no rule is about are left out; what they order is not.
// Complexity  O(n^2) to build for n nodes. Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "offline/check/growing_order.h"
#include "tso/order/orientations.h"

namespace tsomon {

struct ExecutionModel {
  using Alternatives = StepOrder::Alternatives;

  GrowingOrder order;
  std::vector<EitherOrder> either;     // implied by the order; both edges may stay open
  std::vector<Alternatives> forward;   // by open edge: from -> to
  std::vector<Alternatives> backward;  // to -> from
  std::vector<uint32_t> priority;      // of the nodes, in the order that is tried first

  const Alternatives& direction(size_t edge, bool is_forward) const {
    return is_forward ? forward[edge] : backward[edge];
  }
  // The order implies one of the alternatives / contradicts all of them.
  bool implied(const Alternatives& alternatives) const;
  bool impossible(const StepOrder::Way& way) const;
  bool insert(const StepOrder::Way& way);
  // One of the alternatives has to be: inserts the only one that is left, if it is, and sets
  // *inserted. False: none is left.
  bool insert_last(const Alternatives& alternatives, bool* inserted);

  // What the values of loads say of the open edges, as they are ordered now; false: a load has no
  // store left that it may have read. A pass over the choices for each that ordered an edge.
  bool draw_values();

  std::span<const ReadChoice> choices;  // of the problem, as many as there is time for
};

// Keeps references to `problem`. Nothing: no execution is left. The order is exhausted() after
// max_work words, from the start.
std::optional<ExecutionModel> make_execution_model(const OrientationProblem& problem,
                                                   uint64_t max_work);

// A complete orientation (true: from -> to) is valid: with the directed edges, also those that lead
// through events of other components, it has no cycle of events, and the problem accepts it.
bool is_valid(const OrientationProblem& problem, const std::vector<bool>& orientation);

}  // namespace tsomon
