#include "offline/check/greedy_order.h"

#include <algorithm>
#include <numeric>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// An open edge, seen from the unit that it leaves when that comes first.
struct Leaving {
  uint32_t open;
  bool forward;
  uint32_t enters;
};

class GreedyOrder {
 public:
  GreedyOrder(const OrientationProblem& problem, const GrowingOrder& units,
              const std::vector<uint32_t>& class_of, ExecutionModel* model)
      : units_(units), model_(*model), leaving_(units.size()), done_(units.size(), false) {
    for (uint32_t i = 0; i < problem.open.size(); ++i) {
      const uint32_t from = class_of[problem.open[i].from];
      const uint32_t to = class_of[problem.open[i].to];
      if (from != to) {
        leaving_[from].push_back({i, true, to});
        leaving_[to].push_back({i, false, from});
      }
    }
  }

  bool run(const std::vector<uint32_t>& by_priority, std::vector<uint32_t>* place) {
    std::vector<uint32_t> missing(units_.size());
    for (uint32_t unit = 0; unit < units_.size(); ++unit) {
      missing[unit] = units_.count_before(unit) - 1;
    }
    std::vector<uint32_t> waiting = by_priority;
    for (uint32_t next = 0; next < units_.size(); ++next) {
      spend(waiting.size());
      const auto taken = std::find_if(waiting.begin(), waiting.end(), [&](uint32_t unit) {
        return missing[unit] == 0 && take(unit);
      });
      if (taken == waiting.end() || model_.order.exhausted()) {
        return false;
      }
      const uint32_t unit = *taken;
      waiting.erase(taken);
      (*place)[unit] = next;
      units_.for_each_after(unit, [&](uint32_t later) { missing[later] -= later == unit ? 0 : 1; });
    }
    return true;
  }

 private:
  // Before all that are not in order; false, and nothing has changed: the steps do not allow it.
  bool take(uint32_t unit) {
    const size_t mark = model_.order.mark();
    done_[unit] = true;
    const bool fits =
        std::all_of(leaving_[unit].begin(), leaving_[unit].end(),
                    [&](const Leaving& edge) { return done_[edge.enters] || insert(edge); });
    if (!fits) {
      model_.order.undo(mark);
      done_[unit] = false;
    }
    return fits;
  }

  bool insert(const Leaving& edge) {
    const auto& ways = model_.direction(edge.open, edge.forward);
    if (model_.implied(ways)) {
      return true;
    }
    return std::any_of(ways.begin(), ways.end(), [&](const StepOrder::Way& way) {
      const size_t mark = model_.order.mark();
      if (model_.impossible(way)) {
        return false;
      }
      if (model_.insert(way)) {
        return true;
      }
      model_.order.undo(mark);
      return false;
    });
  }

  const GrowingOrder& units_;
  ExecutionModel& model_;
  std::vector<std::vector<Leaving>> leaving_;  // by unit
  std::vector<bool> done_;
};

}  // namespace

std::optional<std::vector<uint32_t>> order_greedily(const OrientationProblem& problem,
                                                    const GrowingOrder& units,
                                                    const std::vector<uint32_t>& class_of,
                                                    const std::vector<uint32_t>& priority,
                                                    ExecutionModel* model) {
  std::vector<uint32_t> by_priority(units.size());
  std::iota(by_priority.begin(), by_priority.end(), 0U);
  std::sort(by_priority.begin(), by_priority.end(),
            [&](uint32_t a, uint32_t b) { return priority[a] < priority[b]; });
  const size_t mark = model->order.mark();
  std::vector<uint32_t> place(units.size());
  const bool found = GreedyOrder(problem, units, class_of, model).run(by_priority, &place);
  model->order.undo(mark);
  return found ? std::optional(std::move(place)) : std::nullopt;
}

}  // namespace tsomon
