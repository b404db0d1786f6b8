#include "offline/linearizability/shrink.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace tsomon::linearizability {
namespace {

constexpr uint32_t kNoEvent = HistoryOperation::kNever;
constexpr uint64_t kMaxShrinkWork = 50'000'000;
constexpr uint64_t kDecisionWork = 1'000'000;
constexpr size_t kMaxStarts = 16;  // values of a cell, for leaving out the begin

std::vector<uint32_t> positions_of(const std::vector<Op>& ops) {
  std::vector<uint32_t> positions;
  for (const Op& op : ops) {
    positions.push_back(op.call);
    if (op.ret != kNoEvent) {
      positions.push_back(op.ret);
    }
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

bool writes(const Op& op) { return op.step == Step::kWrite || op.step == Step::kCas; }
HistoryValue written(const Op& op) { return op.step == Step::kWrite ? op.a : op.b; }

class Shrinker {
 public:
  Shrinker(const History& history, const Part& part, const SearchBounds& bounds)
      : history_(history), part_(part), bounds_(bounds) {
    starts_ = {part.initial};
    // What is left of a violation is decided as easily, unless it is a worse question.
    bounds_.max_work = std::min(bounds_.max_work, kMaxShrinkWork + 200 * part.ops.size());
    decision_work_ = std::max<uint64_t>(kDecisionWork, 8 * part.ops.size());
  }

  Shrunk run(const std::vector<uint32_t>& suspects) {
    keep_suspects(suspects);
    cut_end();
    cut_begin();
    leave_out_in_chunks();
    while (single_step()) {
    }
    Shrunk result;
    result.ops = std::move(part_.ops);
    result.complete = complete_;
    return result;
  }

  // Every part that one step makes; stops when `found` returns true.
  bool each_smaller(const std::function<bool(std::vector<Op>)>& found) const {
    const std::vector<uint32_t> positions = positions_of(part_.ops);
    if (!positions.empty() && found(without_end(positions.back()))) {
      return true;
    }
    uint32_t first_return = kNoEvent;
    for (const Op& op : part_.ops) {
      first_return = std::min(first_return, op.ret);
    }
    if (any_start_ && first_return != kNoEvent && found(without_begin(first_return + 1))) {
      return true;
    }
    for (const auto& unit : units()) {
      if (found(without(unit))) {
        return true;
      }
    }
    for (size_t i = 0; i < part_.ops.size(); ++i) {
      const Op& op = part_.ops[i];
      if (!op.pending && !is_observer(op.step) && !process_goes_on(i) && found(without_return(i))) {
        return true;
      }
    }
    return false;
  }

 private:
  bool violates(std::vector<Op> ops) {
    Part part = part_;
    part.ops = std::move(ops);
    for (const HistoryValue start : starts_) {
      if (work_ >= bounds_.max_work) {
        complete_ = false;
        return false;
      }
      SearchBounds bounds = bounds_;
      bounds.max_work = decision_work_;
      part.initial = start;
      const Decision decision = decide(history_, part, bounds);
      work_ += decision.work + 1;
      complete_ = complete_ && decision.answer != Answer::kBound;
      if (decision.answer != Answer::kViolation) {
        return false;
      }
    }
    return true;
  }

  bool accept(std::vector<Op> ops) {
    if (!violates(ops)) {
      return false;
    }
    part_.ops = std::move(ops);
    return true;
  }

  void add_pending(const Op& op, std::vector<Op>* ops) const {
    if (const auto pending = as_pending(history_, part_.kind, op)) {
      ops->push_back(*pending);
    }
  }

  // Events from `position` on are left out.
  std::vector<Op> without_end(uint32_t position) const {
    std::vector<Op> ops;
    for (const Op& op : part_.ops) {
      if (op.call < position) {
        op.ret < position || op.pending ? ops.push_back(op) : add_pending(op, &ops);
      }
    }
    return ops;
  }

  // Operations that returned before `position` are left out.
  std::vector<Op> without_begin(uint32_t position) const {
    std::vector<Op> ops;
    for (const Op& op : part_.ops) {
      if (op.ret >= position) {
        op.call >= position || op.pending ? ops.push_back(op) : add_pending(op, &ops);
      }
    }
    return ops;
  }

  std::vector<Op> without_return(size_t at) const {
    std::vector<Op> ops;
    for (size_t i = 0; i < part_.ops.size(); ++i) {
      i == at ? add_pending(part_.ops[i], &ops) : ops.push_back(part_.ops[i]);
    }
    return ops;
  }

  // A history in which a process calls again before it returns is none.
  bool process_goes_on(size_t at) const {
    const std::vector<HistoryOperation>& all = history_.operations;
    for (size_t i = at + 1; i < part_.ops.size(); ++i) {
      if (all[part_.ops[i].source].process == all[part_.ops[at].source].process) {
        return true;
      }
    }
    return false;
  }

  std::vector<Op> without(const std::vector<uint32_t>& sorted) const {
    std::vector<Op> ops;
    size_t next = 0;
    for (uint32_t i = 0; i < part_.ops.size(); ++i) {
      if (next < sorted.size() && sorted[next] == i) {
        ++next;
      } else {
        ops.push_back(part_.ops[i]);
      }
    }
    return ops;
  }

  // What may be left out together: indices of operations, ascending.
  std::vector<std::vector<uint32_t>> units() const {
    std::vector<std::vector<uint32_t>> result;
    std::map<HistoryValue, std::vector<uint32_t>> by_value;
    std::set<HistoryValue> asked;  // values that something but a write asks for
    bool asks_for_any = false;
    for (const Op& op : part_.ops) {
      asks_for_any = asks_for_any || op.step == Step::kNot || op.step == Step::kUnless ||
                     op.step == Step::kAdd || op.step == Step::kAppend;
      if (op.step == Step::kRead || op.step == Step::kCas) {
        asked.insert(op.a);
      }
    }
    for (uint32_t i = 0; i < part_.ops.size(); ++i) {
      const Op& op = part_.ops[i];
      const bool observes = is_observer(op.step);
      if (!observes && is_container(part_.kind) && !(is_pop(op.step) && op.pending)) {
        by_value[op.a].push_back(i);
      } else if (observes || (!asks_for_any && writes(op) && asked.count(written(op)) == 0)) {
        result.push_back({i});
      }
    }
    // Peeks of a value go with it, and alone.
    for (uint32_t i = 0; i < part_.ops.size(); ++i) {
      const Step step = part_.ops[i].step;
      const auto group = by_value.find(part_.ops[i].a);
      if ((step == Step::kPeekFront || step == Step::kPeekBack) && group != by_value.end()) {
        group->second.push_back(i);
      }
    }
    for (auto& [value, group] : by_value) {
      std::sort(group.begin(), group.end());
      result.push_back(std::move(group));
    }
    return result;
  }

  void keep_suspects(std::vector<uint32_t> suspects) {
    if (suspects.empty()) {
      return;
    }
    std::sort(suspects.begin(), suspects.end());
    std::vector<Op> ops;
    ops.reserve(suspects.size());
    for (const uint32_t i : suspects) {
      ops.push_back(part_.ops[i]);
    }
    accept(std::move(ops));
  }

  // To the first event with which there is a violation.
  void cut_end() {
    const std::vector<uint32_t> positions = positions_of(part_.ops);
    size_t low = 0;  // events that are no violation
    size_t high = positions.size();
    std::vector<Op> best = part_.ops;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      std::vector<Op> ops = without_end(positions[middle]);
      if (violates(ops)) {
        high = middle;
        best = std::move(ops);
      } else {
        low = middle;
      }
    }
    part_.ops = std::move(best);
  }

  // From the last event from which on there is a violation, whatever the cell held.
  void cut_begin() {
    if (is_container(part_.kind) || part_.kind == ObjectKind::kCounter ||
        part_.kind == ObjectKind::kKvAppend) {
      return;
    }
    std::set<HistoryValue> values = {part_.initial};
    for (const Op& op : part_.ops) {
      if (writes(op) || op.step == Step::kUnless) {
        values.insert(written(op));
      }
      if (values.size() > kMaxStarts) {
        return;
      }
    }
    starts_.assign(values.begin(), values.end());
    any_start_ = true;
    const std::vector<uint32_t> positions = positions_of(part_.ops);
    size_t low = 0;
    size_t high = positions.size();
    std::vector<Op> best;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      std::vector<Op> ops = without_begin(positions[middle]);
      if (violates(ops)) {
        low = middle;
        best = std::move(ops);
      } else {
        high = middle;
      }
    }
    if (best.empty() && !violates(part_.ops)) {
      starts_ = {part_.initial};
      any_start_ = false;
    } else if (!best.empty()) {
      part_.ops = std::move(best);
    }
  }

  // Chunks of units, halved as long as they are all needed.
  void leave_out_in_chunks() {
    for (size_t size = units().size() / 2; size > 1; size /= 2) {
      std::vector<std::vector<uint32_t>> all = units();
      for (size_t begin = 0; begin < all.size() && complete_;) {
        std::vector<uint32_t> chunk;
        for (size_t i = begin; i < std::min(begin + size, all.size()); ++i) {
          // Writes depend on one another: one at a time.
          if (is_container(part_.kind) || is_observer(part_.ops[all[i][0]].step)) {
            chunk.insert(chunk.end(), all[i].begin(), all[i].end());
          }
        }
        std::sort(chunk.begin(), chunk.end());
        chunk.erase(std::unique(chunk.begin(), chunk.end()), chunk.end());
        if (!chunk.empty() && accept(without(chunk))) {
          all = units();
        } else {
          begin += size;
        }
      }
    }
  }

  bool single_step() {
    std::vector<Op> smaller;
    const bool found = each_smaller([&](std::vector<Op> ops) {
      if (!complete_ || !violates(ops)) {
        return false;
      }
      smaller = std::move(ops);
      return true;
    });
    if (found) {
      part_.ops = std::move(smaller);
    }
    return found;
  }

  const History& history_;
  Part part_;
  SearchBounds bounds_;
  std::vector<HistoryValue> starts_;  // of the cell
  bool any_start_ = false;            // they are all that it can have
  uint64_t work_ = 0;
  uint64_t decision_work_ = 0;
  bool complete_ = true;
};

}  // namespace

Shrunk shrink(const History& history, const Part& violation, const std::vector<uint32_t>& suspects,
              const SearchBounds& bounds) {
  return Shrinker(history, violation, bounds).run(suspects);
}

std::vector<Part> smaller_parts(const History& history, const Part& part) {
  std::vector<Part> result;
  Shrinker(history, part, {}).each_smaller([&](std::vector<Op> ops) {
    result.push_back(part);
    result.back().ops = std::move(ops);
    return false;
  });
  return result;
}

}  // namespace tsomon::linearizability
