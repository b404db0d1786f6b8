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
#include <numeric>
#include <set>
#include <tuple>

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

// Times with room in and around the gaps: position p is 4 p, and around a gap that empty
// observations take effect in all that goes before it ends, and all that goes after it begins.
constexpr uint64_t before(uint32_t gap) { return 4 * uint64_t{gap} + 1; }
constexpr uint64_t inside(uint32_t gap) { return 4 * uint64_t{gap} + 2; }
constexpr uint64_t after(uint32_t gap) { return 4 * uint64_t{gap} + 3; }

struct Bounds {
  uint64_t push_call;
  uint64_t push_ret;
  uint64_t pop_call;
  uint64_t pop_ret;
};

// `gaps`: where something was seen to be empty, ascending.
Bounds bounds_of(const DistinctValue& value, const std::vector<uint32_t>& gaps) {
  const uint32_t last = std::max(value.push.call, value.pop.call);
  const auto next = std::lower_bound(gaps.begin(), gaps.end(), last);
  const uint64_t low = next == gaps.begin() ? 0 : after(*(next - 1));
  const uint64_t high = next == gaps.end() ? UINT64_MAX : before(*next);
  const uint64_t push_call = std::max(low, 4 * uint64_t{value.push.call});
  const uint64_t pop_ret = std::min(high, 4 * uint64_t{value.pop.ret});
  return {push_call, std::min(pop_ret, 4 * uint64_t{value.push.ret}),
          std::max(push_call, 4 * uint64_t{value.pop.call}), pop_ret};
}

// The values in an order that no push and no pop contradicts: always one that nothing has to be
// before, of those whose push may be next the one whose pop was called first.
std::vector<uint32_t> value_order(const std::vector<Bounds>& values) {
  const auto by = [&values](uint64_t Bounds::*time) {
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return values[a].*time < values[b].*time; });
    return order;
  };
  const std::vector<uint32_t> calls = by(&Bounds::push_call);
  const std::vector<uint32_t> returns = by(&Bounds::push_ret);
  std::vector<bool> done(values.size());
  std::set<std::pair<uint64_t, uint32_t>> may_be_next;
  std::vector<uint32_t> order;
  size_t call = 0;
  for (size_t first = 0; order.size() < values.size();) {
    for (; done[returns[first]]; ++first) {
    }
    for (; call < calls.size() && values[calls[call]].push_call <= values[returns[first]].push_ret;
         ++call) {
      may_be_next.emplace(values[calls[call]].pop_call, calls[call]);
    }
    const uint32_t value = may_be_next.begin()->second;
    may_be_next.erase(may_be_next.begin());
    done[value] = true;
    order.push_back(value);
  }
  return order;
}

}  // namespace

std::vector<uint32_t> queue_order(const Distinct& history) {
  const std::vector<uint32_t> below = history.bare_gaps_below();
  std::vector<std::tuple<uint64_t, int, size_t, uint32_t>> moments;  // with the operation last
  std::vector<uint32_t> gaps;
  for (const EmptySeen& seen : history.empties) {
    const auto bare = std::upper_bound(below.begin(), below.end(), below[seen.interval.call]);
    const auto gap = static_cast<uint32_t>(bare - below.begin()) - 1;
    gaps.push_back(gap);
    moments.emplace_back(inside(gap), 0, 0, seen.op);
  }
  std::sort(gaps.begin(), gaps.end());
  gaps.erase(std::unique(gaps.begin(), gaps.end()), gaps.end());
  std::vector<Bounds> bounds;
  for (const DistinctValue& value : history.values) {
    bounds.push_back(bounds_of(value, gaps));
  }
  uint64_t pushed = 0;
  uint64_t popped = 0;
  size_t number = 0;
  for (const uint32_t i : value_order(bounds)) {
    pushed = std::max(pushed, bounds[i].push_call);
    popped = std::max({popped, pushed, bounds[i].pop_call});
    moments.emplace_back(pushed, 1, ++number, history.values[i].push_op);
    if (history.values[i].pop_op != HistoryOperation::kNever) {
      moments.emplace_back(popped, 2, number, history.values[i].pop_op);
    }
  }
  std::sort(moments.begin(), moments.end());
  std::vector<uint32_t> order;
  order.reserve(moments.size());
  for (const auto& moment : moments) {
    order.push_back(std::get<3>(moment));
  }
  return order;
}

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
