// Stacks of distinct values.
//
// A linearization gives every value a time in the stack; any two of these are nested or apart. It
// exists iff repeating two steps leaves no value:
//   Split: in a gap t in which no value is certainly in the stack, values both of whose operations
//     were called before t go before it, all others after it, as in queue_monitor.cpp, where it is
//     shown that neither side gets a new order in time and that each value has room on its side. So
//     both sides are linearizable if the whole is, and then one after the other is a linearization
//     of the whole. Empty observations need such a gap, and get it at the first splits.
//   Peel: a component that no gap splits. In a linearization there is no time between its first and
//     last operation at which the stack is empty, or its gap would be one to split at. So one value
//     is pushed first and popped last: its push was called before anything else returned, and its
//     pop returned after everything else was called. Whichever value is like that may be taken: if
//     the rest has a linearization, then put around it this value makes one of the whole; and if
//     the whole has one, then leaving the value out makes one of the rest.
// So when a component has no such value, its values are a violation by themselves.
#include <algorithm>
#include <limits>

#include "offline/linearizability/monitors.h"
#include "tso/support/none.h"

namespace tsomon::linearizability {
namespace {

// How many values are certainly there in each gap, or kUsed; finds gaps without any.
class Cover {
 public:
  static constexpr int32_t kUsed = 1 << 30;

  explicit Cover(const std::vector<int32_t>& counts) {
    while (size_ < counts.size()) {
      size_ *= 2;
    }
    least_.assign(2 * size_, kUsed);
    added_.assign(2 * size_, 0);
    std::copy(counts.begin(), counts.end(), least_.begin() + static_cast<ptrdiff_t>(size_));
    for (size_t node = size_ - 1; node > 0; --node) {
      pull(node);
    }
  }

  // To the gaps [begin, end).
  void add(uint32_t begin, uint32_t end, int32_t count) { add(1, 0, size_, begin, end, count); }
  // Never found again.
  void use(uint32_t gap) { add(gap, gap + 1, kUsed); }
  // A bare gap in [begin, end); kNone if there is none.
  uint32_t find_bare(uint32_t begin, uint32_t end) const {
    return begin < end ? find(1, 0, size_, begin, end, 0) : kNone;
  }

 private:
  void pull(size_t node) {
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]) + added_[node];
  }

  void add(size_t node, size_t low, size_t high, size_t begin, size_t end, int32_t count) {
    if (end <= low || high <= begin) {
      return;
    }
    if (begin <= low && high <= end) {
      least_[node] += count;
      added_[node] += count;
      return;
    }
    const size_t middle = (low + high) / 2;
    add(2 * node, low, middle, begin, end, count);
    add(2 * node + 1, middle, high, begin, end, count);
    pull(node);
  }

  // `above`: what was added to the nodes over this one.
  uint32_t find(size_t node, size_t low, size_t high, size_t begin, size_t end,
                int32_t above) const {
    if (end <= low || high <= begin || least_[node] + above > 0) {
      return kNone;
    }
    if (high - low == 1) {
      return static_cast<uint32_t>(low);
    }
    const size_t middle = (low + high) / 2;
    above += added_[node];
    const uint32_t left = find(2 * node, low, middle, begin, end, above);
    return left != kNone ? left : find(2 * node + 1, middle, high, begin, end, above);
  }

  size_t size_ = 1;
  std::vector<int32_t> least_;
  std::vector<int32_t> added_;
};

// The values that are left, by the later of their two calls.
class Left {
 public:
  struct Node {
    uint32_t first_return = kNone;
    uint32_t first_push = kNone;  // call
    uint32_t last_pop = 0;        // return
    uint32_t rightmost = kNone;   // index of a value that is left
  };

  explicit Left(const std::vector<DistinctValue>& values) {
    while (size_ < values.size()) {
      size_ *= 2;
    }
    nodes_.resize(2 * size_);
    for (uint32_t i = 0; i < values.size(); ++i) {
      const DistinctValue& value = values[i];
      nodes_[size_ + i] = {std::min(value.push.ret, value.pop.ret), value.push.call, value.pop.ret,
                           i};
    }
    for (size_t node = size_ - 1; node > 0; --node) {
      nodes_[node] = merge(nodes_[2 * node], nodes_[2 * node + 1]);
    }
  }

  void remove(uint32_t value) {
    size_t node = size_ + value;
    nodes_[node] = {};
    for (node /= 2; node > 0; node /= 2) {
      nodes_[node] = merge(nodes_[2 * node], nodes_[2 * node + 1]);
    }
  }

  Node in(uint32_t begin, uint32_t end) const {
    Node left;
    Node right;
    for (size_t low = size_ + begin, high = size_ + end; low < high; low /= 2, high /= 2) {
      if ((low & 1) != 0) {
        left = merge(left, nodes_[low++]);
      }
      if ((high & 1) != 0) {
        right = merge(nodes_[--high], right);
      }
    }
    return merge(left, right);
  }

  // A value whose push was called before `first_return` and whose pop returned after `last_call`.
  uint32_t find(uint32_t begin, uint32_t end, uint32_t first_return, uint32_t last_call) const {
    return find(1, 0, size_, begin, end, first_return, last_call);
  }

 private:
  static Node merge(const Node& a, const Node& b) {
    return {std::min(a.first_return, b.first_return), std::min(a.first_push, b.first_push),
            std::max(a.last_pop, b.last_pop), b.rightmost != kNone ? b.rightmost : a.rightmost};
  }

  uint32_t find(size_t node, size_t low, size_t high, size_t begin, size_t end,
                uint32_t first_return, uint32_t last_call) const {
    if (end <= low || high <= begin || nodes_[node].first_push >= first_return ||
        nodes_[node].last_pop <= last_call) {
      return kNone;
    }
    if (high - low == 1) {
      return static_cast<uint32_t>(low);
    }
    const size_t middle = (low + high) / 2;
    const uint32_t left = find(2 * node, low, middle, begin, end, first_return, last_call);
    return left != kNone ? left
                         : find(2 * node + 1, middle, high, begin, end, first_return, last_call);
  }

  size_t size_ = 1;
  std::vector<Node> nodes_;
};

uint32_t later_call(const DistinctValue& value) {
  return std::max(value.push.call, value.pop.call);
}

class StackMonitor {
 public:
  explicit StackMonitor(const Distinct& history)
      : history_(history),
        values_(by_later_call(history)),
        counts_(counts(history)),
        cover_(counts_),
        left_(values_),
        below_(size_t{history.positions} + 1) {
    for (const DistinctValue& value : values_) {
      ++below_[later_call(value) + 1];
    }
    for (size_t i = 1; i < below_.size(); ++i) {
      below_[i] += below_[i - 1];
    }
  }

  Monitored run() {
    std::vector<Task> tasks = first_tasks();
    Monitored result;
    while (!tasks.empty()) {
      const auto [begin, end, popped] = tasks.back();
      tasks.pop_back();
      if (popped != kNone) {
        result.order.push_back(popped);
        continue;
      }
      const uint32_t first = below_[begin];
      const uint32_t last = below_[end];
      const Left::Node all = left_.in(first, last);
      if (all.rightmost == kNone) {
        continue;
      }
      if (const uint32_t gap = cover_.find_bare(begin, end - 1); gap != kNone) {
        cover_.use(gap);
        tasks.push_back({gap + 1, end});
        tasks.push_back({begin, gap + 1});
        continue;
      }
      const uint32_t value =
          left_.find(first, last, all.first_return, later_call(values_[all.rightmost]));
      if (value == kNone) {
        return violation(first, last);
      }
      left_.remove(value);
      if (values_[value].certain()) {
        cover_.add(values_[value].push.ret, values_[value].pop.call, -1);
      }
      result.order.push_back(values_[value].push_op);
      if (values_[value].pop_op != HistoryOperation::kNever) {
        tasks.push_back({0, 0, values_[value].pop_op});
      }
      tasks.push_back({begin, end});
    }
    return result;
  }

 private:
  // What is left to do, the last first, so that the order comes out from left to right: a component
  // of the positions [begin, end), bounded by gaps begin - 1 and end - 1, or an operation.
  struct Task {
    uint32_t begin = 0;
    uint32_t end = 0;
    uint32_t op = kNone;
  };

  // The first gaps without any value are all used at once; each empty observation gets one.
  std::vector<Task> first_tasks() {
    std::vector<std::pair<uint32_t, uint32_t>> seen;  // gap, operation
    const std::vector<uint32_t> below = history_.bare_gaps_below();
    for (const EmptySeen& empty : history_.empties) {
      const auto bare = std::upper_bound(below.begin(), below.end(), below[empty.interval.call]);
      seen.emplace_back(static_cast<uint32_t>(bare - below.begin()) - 1, empty.op);
    }
    std::sort(seen.begin(), seen.end());
    std::vector<Task> tasks;
    uint32_t begin = 0;
    size_t next = 0;
    for (uint32_t end = 1; end <= history_.positions; ++end) {
      if (end == history_.positions || counts_[end - 1] == Cover::kUsed) {
        if (below_[end] > below_[begin]) {
          tasks.push_back({begin, end});
        }
        for (; next < seen.size() && seen[next].first == end - 1; ++next) {
          tasks.push_back({0, 0, seen[next].second});
        }
        begin = end;
      }
    }
    counts_ = {};
    std::reverse(tasks.begin(), tasks.end());
    return tasks;
  }

  static std::vector<DistinctValue> by_later_call(const Distinct& history) {
    std::vector<DistinctValue> values(history.values);
    std::sort(values.begin(), values.end(), [](const DistinctValue& a, const DistinctValue& b) {
      return later_call(a) < later_call(b);
    });
    return values;
  }

  static std::vector<int32_t> counts(const Distinct& history) {
    std::vector<int32_t> counts(size_t{history.positions} + 1);
    for (const DistinctValue& value : history.values) {
      if (value.certain()) {
        ++counts[value.push.ret];
        --counts[value.pop.call];
      }
    }
    int32_t present = 0;
    for (int32_t& count : counts) {
      present += count;
      count = present == 0 ? Cover::kUsed : present;
    }
    return counts;
  }

  Monitored violation(uint32_t first, uint32_t last) {
    Monitored result;
    result.linearizable = false;
    for (uint32_t i = first; i < last; ++i) {
      if (left_.in(i, i + 1).rightmost != kNone) {
        history_.add_ops(values_[i], &result.suspects);
      }
    }
    return result;
  }

  const Distinct& history_;
  std::vector<DistinctValue> values_;
  std::vector<int32_t> counts_;
  Cover cover_;
  Left left_;
  std::vector<uint32_t> below_;  // values whose later call is below a position
};

}  // namespace

Monitored monitor_stack(const Distinct& values) {
  const std::vector<uint32_t> below = values.bare_gaps_below();
  for (const EmptySeen& seen : values.empties) {
    if (below[seen.interval.call] == below[seen.interval.ret]) {
      Monitored result;
      result.linearizable = false;
      result.suspects = {seen.op};
      for (const DistinctValue& value : values.values) {
        if (value.certain() && value.push.ret < seen.interval.ret &&
            value.pop.call > seen.interval.call) {
          values.add_ops(value, &result.suspects);
        }
      }
      return result;
    }
  }
  return StackMonitor(values).run();
}

}  // namespace tsomon::linearizability
