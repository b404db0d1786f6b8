#include "offline/linearizability/monitors.h"

namespace tsomon::linearizability {
namespace {

Monitored judge(ObjectKind kind, const Distinct& values) {
  switch (kind) {
    case ObjectKind::kQueue:
      return monitor_queue(values);
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

}  // namespace

// A pending pop may have taken a value that no other pop returned, or nothing. Without any effect
// of them the history may be linearizable; then it is. Leaving out all values without a pop leaves
// out, too, what they may have taken: a violation of the rest is one of the whole. What is between
// the two is left to the search.
std::optional<Monitored> monitor(const Part& part) {
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
    return Monitored{false, std::move(table.wrong)};
  }
  if (part.kind == ObjectKind::kPriorityQueue && pops_smallest(part)) {
    for (DistinctValue& value : table.values) {
      value.value = -value.value;
    }
  }
  Monitored result = judge(part.kind, distinct_values(part, table, false));
  if (result.linearizable || !table.pending_pops) {
    return result;
  }
  result = judge(part.kind, distinct_values(part, table, true));
  return result.linearizable ? std::nullopt : std::optional(std::move(result));
}

}  // namespace tsomon::linearizability
