// Runs the operations of a value problem one by one in an order that the closed order allows.
//
// Purpose     The other half of the consistency check: what inference leaves open is tried out.
//             Loads take effect as soon as they see their value, stores when nobody still has to
//             read what they overwrite, the one that has waited longest first. When nothing can go
//             on, the stuck operations name the decision that has to be taken.
// Complexity  O(n * threads). Thread-safety: a pure function of its arguments.
#pragma once

#include <vector>

#include "offline/memory_order.h"

namespace tsomon {

struct Schedule {
  std::vector<uint32_t> order;  // all operations, as they take effect; complete or stuck
  bool complete = false;
  // If stuck, one of: a load that does not see its value, with several stores to choose from;
  uint32_t load = Operation::kNone;
  // or two stores to one location, of which `first` was run and `second` may not overwrite it.
  uint32_t first = Operation::kNone;
  uint32_t second = Operation::kNone;
};

Schedule run_schedule(const ValueProblem& problem, const MemoryOrder& order);

// Whether the operations in this order are an execution with the values of the problem; decided
// from the definitions, by simulating memory and store buffers.
bool is_execution(const ValueProblem& problem, MemoryModel model,
                  const std::vector<uint32_t>& order);

}  // namespace tsomon
