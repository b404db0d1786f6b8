// The valid orientations of one component of a trace, enumerated.
//
// Source      Theory sections 3 and 5.1.
// Purpose     Decides for one strongly connected component of the mixed conflict graph whether some
//             valid orientation of its open edges makes the conflict graph cyclic, and whether some
//             valid orientation leaves it acyclic. Exact within its bound; beyond it the answer is
//             kUnknown, never a guess.
// Complexity  Exponential in the open edges of the component in the worst case; forced orientations are
//             propagated, and branches that cannot reach the wanted answer are cut. `max_steps`
//             bounds the decisions, `max_work` what they cost: rules and edges looked at and words
//             of order copied or merged, a few nanoseconds each at most; `max_bytes` the memory.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tso/order/execution.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/partial_order.h"
#include "tso/order/refinement.h"

namespace tsomon {

enum class Answer : uint8_t { kNo, kYes, kUnknown };

// What a load's value says of a component. Elements: the load, then `sources` stores that it may have
// read, then other stores that may come between.
struct ReadChoice {
  static constexpr int32_t kBefore = -1;
  static constexpr int32_t kAfter = -2;
  static constexpr int32_t kNone = -3;  // not known, and no open edge
  uint32_t sources = 0;
  bool initial = false;  // or it has read what was there before all of these stores
  uint32_t elements = 0;
  // Row i, column j: how element i is ordered with j, or 2k where open edge k leads from i to j,
  // 2k + 1 where from j to i.
  std::vector<int32_t> order;
  int32_t at(uint32_t i, uint32_t j) const { return order[i * elements + j]; }
};

// One component. "Classes" are the nodes whose graph must be acyclic: units for serializability, single
// events (with program order among the edges) for robustness.
struct OrientationProblem {
  std::vector<uint32_t> events;    // events with open edges, as trace indices
  std::vector<uint32_t> class_of;  // class of each, from 0
  std::vector<MixedEdge> open;     // between positions in `events`
  std::vector<ReadsFrom> rules;    // over positions in `events`
  // Of the directed edges, over `events`; of a component that is beyond the bounds it is not made.
  PartialOrder event_order;
  // The same by question, also where event_order has not been made: the first of two different ones
  // comes before the second.
  std::function<bool(uint32_t, uint32_t)> before;
  std::vector<MixedEdge> classes;  // directed edges between classes
  uint32_t class_count = 0;
  std::vector<uint32_t> hint;  // per open edge, 1: try from->to first, 0: to->from first
  // The executions of the component, from an events' slice of their own, if it is small enough to be
  // realised (nodes > 0): before and after belong to `open`. `step_of`: for each of `events` the
  // node that issues it, and the one at which it takes effect.
  StepOrder steps;
  std::vector<std::pair<uint32_t, uint32_t>> step_of;
  std::vector<ReadChoice> choices;  // a search may make use of them; `accept` knows the same
  // Asked about every complete orientation (true: from -> to) that the rules above allow; one that
  // is refused is not valid. Empty: all are accepted.
  std::function<bool(const std::vector<bool>&)> accept;
  uint64_t accept_work = 0;  // what asking costs
};

struct OrientationBounds {
  uint64_t max_steps = 20'000;
  uint64_t max_work = 500'000'000;
  uint64_t max_bytes = uint64_t{1} << 30;
};

// What the search of a component with so many events with open edges needs at most, all orders together
// and all that is kept for an open edge.
inline uint64_t bytes_of_part(uint64_t events, uint64_t open) {
  return events * events + 256 * open;
}

struct OrientationResult {
  Answer cyclic = Answer::kUnknown;   // some valid orientation is bad
  Answer acyclic = Answer::kUnknown;  // some valid orientation is good
  // A valid orientation of all open edges, true: from -> to; cyclic if there is such a one.
  std::vector<bool> orientation;
  bool has_orientation = false;
  // Of a component that was not oriented as a whole: an open edge, over positions in `events`, that
  // closes a cycle of classes so.
  std::optional<Edge> closing;
  uint64_t steps = 0;  // decisions that were taken
  uint64_t work = 0;
};

// The order of the classes that have open edges, through all the others, by directed edges.
struct ClassOrder {
  static constexpr uint32_t kNone = 0xFFFFFFFFU;
  std::vector<uint32_t> position;  // of a class in `order`, or kNone
  std::optional<PartialOrder> order;
  bool cyclic = false;     // there is none
  bool too_large = false;  // beyond a bound: it was not made
};
ClassOrder order_classes(const OrientationProblem& problem, const OrientationBounds& bounds);

// How a component is searched; enumerate_orientations() is one way.
using OrientationSearch =
    std::function<OrientationResult(const OrientationProblem&, const OrientationBounds&)>;

OrientationResult enumerate_orientations(const OrientationProblem& problem,
                                         const OrientationBounds& bounds);

}  // namespace tsomon
