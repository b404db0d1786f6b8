// Priority queues of distinct values; the largest comes out first.
//
// A value v must be popped in a gap in which no larger value is in the queue; an operation that saw
// it empty needs a gap without any value. Smaller values never matter to larger ones. So the values
// are placed from the largest down, each so that it keeps as few gaps as possible from the smaller
// ones: pushed as late and popped as early as may be.
//   - `open` gaps are those in which no larger value is all the time. v must be popped in an open
//     gap of its pop that is not before the call of its push; the earliest is g. Without one there
//     is no linearization: every choice for the larger values keeps at least these gaps closed.
//   - If g is also a gap of the push, v is pushed and popped in g and closes nothing. Otherwise all
//     open gaps of its pop come after the push has returned, v is in the queue from then until g at
//     least, and closes the gaps [push.ret, g) and no other.
// Inside a gap the order is: pops, the largest first, pairs of push and pop alike, then pushes. A
// value that is in the queue for a part of a gap only, at its begin until it is popped or at its
// end after it was pushed, leaves room for the others. Sound and complete by induction over the
// values.
#include <algorithm>
#include <numeric>

#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {
namespace {

// The gaps that are open; closing is for good.
class OpenGaps {
 public:
  explicit OpenGaps(uint32_t gaps) : next_(size_t{gaps} + 1) {
    std::iota(next_.begin(), next_.end(), 0U);
  }
  // The first open gap at or after `gap`; the number of gaps if there is none.
  uint32_t first(uint32_t gap) {
    uint32_t root = gap;
    while (next_[root] != root) {
      root = next_[root];
    }
    while (next_[gap] != root) {
      gap = std::exchange(next_[gap], root);
    }
    return root;
  }
  void close(uint32_t begin, uint32_t end) {
    for (uint32_t gap = first(begin); gap < end; gap = first(gap)) {
      next_[gap] = gap + 1;
    }
  }

 private:
  std::vector<uint32_t> next_;  // towards the next open gap
};

}  // namespace

Monitored monitor_priority_queue(const Distinct& history) {
  std::vector<uint32_t> order(history.values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return history.values[a].value > history.values[b].value;
  });
  OpenGaps open(history.positions);
  Monitored result;
  const auto refuse = [&](size_t placed) {
    result.linearizable = false;
    for (size_t i = 0; i < placed; ++i) {
      history.add_ops(history.values[order[i]], &result.suspects);
    }
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const DistinctValue& value = history.values[order[i]];
    const uint32_t gap = open.first(std::max(value.pop.call, value.push.call));
    if (gap >= value.pop.ret) {
      refuse(i + 1);
      return result;
    }
    if (gap >= value.push.ret) {
      open.close(value.push.ret, gap);
    }
  }
  for (const EmptySeen& seen : history.empties) {
    if (open.first(seen.interval.call) >= seen.interval.ret) {
      refuse(order.size());
      result.suspects.push_back(seen.op);
      return result;
    }
  }
  return result;
}

}  // namespace tsomon::linearizability
