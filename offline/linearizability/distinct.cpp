#include "offline/linearizability/distinct.h"

#include <algorithm>

#include "tso/support/flat_map.h"

namespace tsomon::linearizability {
namespace {

constexpr uint32_t kNever = HistoryOperation::kNever;

// Of sparse positions the rank of each.
class Ranks {
 public:
  explicit Ranks(std::vector<uint32_t> positions) : positions_(std::move(positions)) {
    uint32_t last = 0;
    for (const uint32_t position : positions_) {
      last = std::max(last, position);
    }
    count_ = static_cast<uint32_t>(positions_.size());
    if (last / 8 > positions_.size()) {
      std::sort(positions_.begin(), positions_.end());
      return;
    }
    direct_.assign(size_t{last} + 1, 0);
    for (const uint32_t position : positions_) {
      direct_[position] = 1;
    }
    uint32_t rank = 0;
    for (uint32_t& entry : direct_) {
      rank += std::exchange(entry, rank);
    }
    positions_.clear();
  }

  uint32_t count() const { return count_; }
  uint32_t operator()(uint32_t position) const {
    return !direct_.empty() ? direct_[position]
                            : static_cast<uint32_t>(
                                  std::lower_bound(positions_.begin(), positions_.end(), position) -
                                  positions_.begin());
  }

 private:
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> direct_;
  uint32_t count_ = 0;
};

}  // namespace

ValueTable value_table(const Part& part) {
  ValueTable table;
  FlatMap<HistoryValue, uint32_t> places;
  places.reserve(part.ops.size() / 2 + 1);
  bool front = false;
  bool back = false;
  for (uint32_t i = 0; i < part.ops.size(); ++i) {
    const Op& op = part.ops[i];
    if (!is_push(op.step)) {
      continue;
    }
    const auto [place, is_new] =
        places.try_emplace(op.a, static_cast<uint32_t>(table.values.size()));
    if (!is_new) {
      return table;
    }
    DistinctValue value;
    value.value = op.a;
    value.push = {op.call, op.ret};
    value.pop = {kNever, kNever};
    value.push_op = i;
    table.values.push_back(value);
  }
  for (uint32_t i = 0; i < part.ops.size(); ++i) {
    const Op& op = part.ops[i];
    if (op.step == Step::kPeekFront || op.step == Step::kPeekBack) {
      return table;
    }
    if (op.step == Step::kIsEmpty) {
      table.empties.push_back(i);
    }
    if (!is_pop(op.step)) {
      continue;
    }
    (op.step == Step::kPopFront ? front : back) = true;
    if (op.pending) {
      table.pending_pops.push_back(i);
      continue;
    }
    const uint32_t* const place = places.find(op.a);
    if (place == nullptr) {
      table.wrong = {i};
      continue;
    }
    DistinctValue& value = table.values[*place];
    if (value.pop_op != kNever) {
      table.wrong = {value.push_op, value.pop_op, i};
    } else if (op.ret < value.push.call) {
      table.wrong = {value.push_op, i};
    }
    value.pop_op = i;
    value.pop = {op.call, op.ret};
  }
  table.applies = !(front && back);
  return table;
}

Distinct distinct_values(const Part& part, const ValueTable& table, bool popped_only) {
  Distinct result;
  uint32_t unpopped = 0;
  std::vector<uint32_t> positions;
  positions.reserve(2 * part.ops.size());
  for (const DistinctValue& value : table.values) {
    const bool popped = value.pop_op != kNever;
    if (!popped && (popped_only || value.push.ret == kNever)) {
      continue;
    }
    unpopped += popped ? 0 : 1;
    result.values.push_back(value);
    for (const uint32_t position :
         {value.push.call, value.push.ret, value.pop.call, value.pop.ret}) {
      if (position != kNever) {
        positions.push_back(position);
      }
    }
  }
  for (const uint32_t i : table.empties) {
    result.empties.push_back({{part.ops[i].call, part.ops[i].ret}, i});
    positions.push_back(part.ops[i].call);
    positions.push_back(part.ops[i].ret);
  }
  const Ranks ranks(std::move(positions));
  uint32_t next_call = ranks.count();
  uint32_t next_return = next_call + unpopped;
  for (DistinctValue& value : result.values) {
    value.push.call = ranks(value.push.call);
    value.push.ret = value.push.ret == kNever ? next_return++ : ranks(value.push.ret);
    if (value.pop_op == kNever) {
      value.pop = {next_call++, next_return++};
    } else {
      value.pop.call = ranks(value.pop.call);
      value.pop.ret = value.pop.ret == kNever ? next_return++ : ranks(value.pop.ret);
    }
  }
  for (EmptySeen& seen : result.empties) {
    seen.interval = {ranks(seen.interval.call), ranks(seen.interval.ret)};
  }
  result.positions = next_return;
  return result;
}

std::vector<uint32_t> Distinct::bare_gaps_below() const {
  std::vector<int32_t> change(size_t{positions} + 1);
  for (const DistinctValue& value : values) {
    if (value.certain()) {
      ++change[value.push.ret];
      --change[value.pop.call];
    }
  }
  std::vector<uint32_t> below(size_t{positions} + 1);
  int32_t present = 0;
  for (uint32_t gap = 0; gap < positions; ++gap) {
    present += change[gap];
    below[gap + 1] = below[gap] + (present == 0 ? 1 : 0);
  }
  return below;
}

}  // namespace tsomon::linearizability
