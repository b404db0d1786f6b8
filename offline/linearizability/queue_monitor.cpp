// Queues of distinct values.
//
// Claim: the history is linearizable iff
//   (1) there are no values a, b with push(a) before push(b) and pop(b) before pop(a), and
//   (2) every operation that saw the queue empty has a gap in which no value is certainly there.
// Necessary: (1) by first in, first out. (2) at its linearization point nothing is in the queue.
// Sufficient: take a gap t of (2). Values both of whose operations were called before t go before
// it, with what they return cut off at t, all others after it. No operation that is cut off has
// returned before t another one on its side was called after, so neither side gets a new order in
// time. A value that goes after t has not certainly been pushed and not popped at t, so both its
// operations can still take effect after t. Repeating this puts every empty observation between two
// sides. A side without such observations needs one order of its values that agrees with the order
// in time of pushes and that of pops. Both are interval orders; in a shortest cycle of their union
// the two alternate, and of a <1 b <2 c <1 d either a <1 d or c <1 b holds, which makes it shorter
// until it has two values, which (1) excludes. Pushes and pops in that order, each as soon as the
// order in time allows, are a linearization.
#include <algorithm>

#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {
namespace {

// (1), by one pass over positions: what was pushed before, with the latest call of its pop.
bool wrong_order(const Distinct& history, Monitored* result) {
  constexpr uint32_t kNone = HistoryOperation::kNever;
  std::vector<uint32_t> pushed(history.positions, kNone);
  for (uint32_t v = 0; v < history.values.size(); ++v) {
    pushed[history.values[v].push.ret] = v;
  }
  uint32_t position = 0;
  uint32_t latest = kNone;  // the value whose pop was called last
  for (const DistinctValue& value : history.values) {
    for (; position < value.push.call; ++position) {
      const uint32_t v = pushed[position];
      if (v != kNone &&
          (latest == kNone || history.values[latest].pop.call < history.values[v].pop.call)) {
        latest = v;
      }
    }
    if (latest != kNone && value.pop.ret < history.values[latest].pop.call) {
      result->linearizable = false;
      history.add_ops(history.values[latest], &result->suspects);
      history.add_ops(value, &result->suspects);
      return true;
    }
  }
  return false;
}

// Values that cover all gaps of an empty observation, few of them.
void add_cover(const Distinct& history, const EmptySeen& seen, std::vector<uint32_t>* suspects) {
  std::vector<const DistinctValue*> certain;
  for (const DistinctValue& value : history.values) {
    if (value.certain() && value.push.ret < seen.interval.ret &&
        value.pop.call > seen.interval.call) {
      certain.push_back(&value);
    }
  }
  std::sort(certain.begin(), certain.end(),
            [](const auto* a, const auto* b) { return a->push.ret < b->push.ret; });
  size_t next = 0;
  for (uint32_t gap = seen.interval.call; gap < seen.interval.ret;) {
    const DistinctValue* farthest = nullptr;
    for (; next < certain.size() && certain[next]->push.ret <= gap; ++next) {
      if (farthest == nullptr || farthest->pop.call < certain[next]->pop.call) {
        farthest = certain[next];
      }
    }
    if (farthest == nullptr || farthest->pop.call <= gap) {
      return;  // cannot be: all gaps are covered
    }
    history.add_ops(*farthest, suspects);
    gap = farthest->pop.call;
  }
}

}  // namespace

Monitored monitor_queue(const Distinct& values) {
  Monitored result;
  if (wrong_order(values, &result)) {
    return result;
  }
  if (values.empties.empty()) {
    return result;
  }
  const std::vector<uint32_t> below = values.bare_gaps_below();
  for (const EmptySeen& seen : values.empties) {
    if (below[seen.interval.call] == below[seen.interval.ret]) {
      result.linearizable = false;
      result.suspects = {seen.op};
      add_cover(values, seen, &result.suspects);
      return result;
    }
  }
  return result;
}

}  // namespace tsomon::linearizability
