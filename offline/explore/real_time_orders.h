// In which orders the operations of concurrent objects may follow one another in time, within one
// class of executions.
//
// Purpose     A class says what every load read, not whether one operation returned before another
//             was called: its executions differ in that. A history is harder to explain the more of
//             its operations come after one another, so of all executions of a class only those are
//             of interest in which no other has more such pairs.
// Moments     A call and a return take place right after the step of their thread that comes before
//             them. A call is a step of its own (Op::kCall); a return that takes place at once
//             comes before all that it may come before.
// Exact       Every linear extension of the order that the model demands of the steps is an
//             execution (execution_graph.h), and the moments' order is a part of it. for_each
//             chooses which return comes next, among those that no other has to precede, and puts
//             in front of it only the calls that have to precede it. Take any execution, and its
//             returns in their order: what this puts in front of the first k returns comes in front
//             of them in the execution, too. So a call that comes after a return there does here:
//             every execution's pairs are among those of one that is visited.
// Values      What is called and returned is the same in all executions of a class.
// Complexity  The orders are as many as those of the returns that the class leaves open, at most
//             `most`; each costs O(m^2) for m calls and returns.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

struct CallMoment {
  static constexpr uint32_t kAtFirst = UINT32_MAX;  // before the program started its first thread

  uint16_t thread = 0;
  bool returns = false;
  uint32_t label = 0;
  uint32_t event = kAtFirst;  // the step before it
};

// Thread by thread, each in its order.
std::vector<CallMoment> call_moments(const Graph& graph, const std::vector<Mark>& marks);

enum class OrdersEnd : uint8_t { kAll, kStopped, kBound };
// `visit` has the moments in an order of time, and returns whether to go on.
OrdersEnd for_each_order(const Graph& graph, Model model, const std::vector<CallMoment>& moments,
                         uint64_t most,
                         const std::function<bool(const std::vector<uint32_t>& order)>& visit);

// A schedule in which the moments have this order.
std::vector<Choice> schedule_of_order(const Graph& graph, Model model,
                                      const std::vector<CallMoment>& moments,
                                      const std::vector<uint32_t>& order);

}  // namespace tsomon::explore
