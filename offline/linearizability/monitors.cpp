#include "offline/linearizability/monitors.h"

#include <algorithm>
#include <set>

namespace tsomon::linearizability {
namespace {

Monitored judge(ObjectKind kind, const Distinct& values, bool want_order) {
  switch (kind) {
    case ObjectKind::kQueue: {
      Monitored result = monitor_queue(values);
      if (want_order && result.linearizable) {
        result.order = queue_order(values);
      }
      return result;
    }
    case ObjectKind::kStack:
      return monitor_stack(values);
    default:
      return monitor_priority_queue(values);
  }
}

bool pops_smallest(const Part& part) {
  for (const Op& op : part.ops) {
    if (op.step == Step::kPopBack) {
      return true;
    }
  }
  return false;
}

constexpr uint64_t kMaxWork = 50'000'000;  // operations judged, for pending pops

// A pending pop may have taken a value that no other pop returned, or nothing.
//
// As long as no pending pop is said to have taken a value, every violation is one of operations
// that stand in its suspects. If it is not one of the whole, then some value among the suspects
// that nobody popped was taken by a pending pop: each is tried with each. If there is no such
// value, or none helps, then the suspects of all that was tried are a violation by themselves,
// together with the pending pops.
class PendingPops {
 public:
  PendingPops(const Part& part, ValueTable* table, bool want_order)
      : part_(part), table_(*table), want_order_(want_order), used_(table->pending_pops.size()) {}

  // Nothing: too much work.
  std::optional<Monitored> run() {
    const bool found = assign();
    if (work_ > kMaxWork) {
      return std::nullopt;
    }
    Monitored result{found, {}, std::move(order_)};
    if (!found) {
      result.suspects = std::move(suspects_);
      result.suspects.insert(result.suspects.end(), table_.pending_pops.begin(),
                             table_.pending_pops.end());
      std::sort(result.suspects.begin(), result.suspects.end());
      result.suspects.erase(std::unique(result.suspects.begin(), result.suspects.end()),
                            result.suspects.end());
    }
    return result;
  }

 private:
  bool assign() {
    work_ += part_.ops.size();
    if (work_ > kMaxWork) {
      return false;
    }
    Monitored seen = judge(part_.kind, distinct_values(part_, table_, false), want_order_);
    if (seen.linearizable) {
      order_ = std::move(seen.order);
      return true;
    }
    suspects_.insert(suspects_.end(), seen.suspects.begin(), seen.suspects.end());
    const std::set<uint32_t> suspects(seen.suspects.begin(), seen.suspects.end());
    for (DistinctValue& value : table_.values) {
      if (value.pop_op != HistoryOperation::kNever || suspects.count(value.push_op) == 0) {
        continue;
      }
      for (size_t i = used_.size(); i-- > 0;) {  // those called late constrain the least
        if (used_[i]) {
          continue;
        }
        const uint32_t pop = table_.pending_pops[i];
        used_[i] = true;
        value.pop_op = pop;
        value.pop = {part_.ops[pop].call, HistoryOperation::kNever};
        const bool found = assign();
        value.pop_op = HistoryOperation::kNever;
        value.pop = {HistoryOperation::kNever, HistoryOperation::kNever};
        used_[i] = false;
        if (found || work_ > kMaxWork) {
          return found;
        }
      }
    }
    return false;
  }

  const Part& part_;
  ValueTable& table_;
  bool want_order_;
  std::vector<bool> used_;
  std::vector<uint32_t> suspects_;
  std::vector<uint32_t> order_;
  uint64_t work_ = 0;
};

}  // namespace

std::optional<Monitored> monitor(const Part& part, bool want_order) {
  if (part.kind == ObjectKind::kSet) {
    return part.initial == 0 ? monitor_set_entry(part) : std::nullopt;
  }
  if (!is_container(part.kind) || part.kind == ObjectKind::kDeque) {
    return std::nullopt;
  }
  ValueTable table = value_table(part);
  if (!table.applies) {
    return std::nullopt;
  }
  if (!table.wrong.empty()) {
    return Monitored{false, std::move(table.wrong), {}};
  }
  if (part.kind == ObjectKind::kPriorityQueue && pops_smallest(part)) {
    for (DistinctValue& value : table.values) {
      value.value = -value.value;
    }
  }
  Monitored result = judge(part.kind, distinct_values(part, table, false), want_order);
  if (result.linearizable || table.pending_pops.empty()) {
    return result;
  }
  // Without the values that nobody popped pending pops have taken nothing.
  result = judge(part.kind, distinct_values(part, table, true), false);
  return result.linearizable ? PendingPops(part, &table, want_order).run()
                             : std::optional(std::move(result));
}

}  // namespace tsomon::linearizability
