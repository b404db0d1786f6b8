// The operations of a container value by value, with dense positions.
//
// Purpose     The common ground of the monitors: when each value was pushed and popped, and when
//             the container was seen to be empty.
// Positions   0 ... positions - 1. Gap g is the time between positions g and g + 1; an operation
//             may take effect in the gaps from its call up to the one before its return.
// Unpopped    Values get a pop after all else, concurrent with one another: what is never popped
//             could be popped at the end in any order. A pending push of a value that was popped
//             returns at the end; of one that was not, it is left out. So does a pending pop that
//             is said to have taken a value.
// Complexity  O(n log n), O(n) when the positions of the part are dense.
// Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

struct Interval {
  uint32_t call = 0;
  uint32_t ret = 0;
};

struct DistinctValue {
  HistoryValue value = 0;
  Interval push;
  Interval pop;
  uint32_t push_op = 0;  // index in Part::ops
  uint32_t pop_op = HistoryOperation::kNever;

  // The value is certainly there in the gaps [push.ret, pop.call), if any.
  bool certain() const { return push.ret < pop.call; }
};

struct EmptySeen {
  Interval interval;
  uint32_t op = 0;
};

struct Distinct {
  std::vector<DistinctValue> values;  // by push.call
  std::vector<EmptySeen> empties;
  uint32_t positions = 0;

  // For every gap, how many of the gaps below it are certain to have no value in the container.
  std::vector<uint32_t> bare_gaps_below() const;
  void add_ops(const DistinctValue& value, std::vector<uint32_t>* ops) const {
    ops->push_back(value.push_op);
    if (value.pop_op != HistoryOperation::kNever) {
      ops->push_back(value.pop_op);
    }
  }
};

// Pushes and pops by value, before anything is said about them.
struct ValueTable {
  bool applies = false;                // distinct values, no peeks, one kind of pop
  std::vector<uint32_t> pending_pops;  // operations, by call
  std::vector<uint32_t> wrong;         // operations that are a violation by themselves
  std::vector<DistinctValue> values;   // positions of Part
  std::vector<uint32_t> empties;       // operations
};
ValueTable value_table(const Part& part);

// `popped_only`: values without a pop are left out.
Distinct distinct_values(const Part& part, const ValueTable& table, bool popped_only);

}  // namespace tsomon::linearizability
