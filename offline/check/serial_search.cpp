#include "offline/check/serial_search.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "offline/check/completion.h"
#include "offline/check/greedy_order.h"
#include "offline/check/growing_order.h"
#include "offline/check/rule_search.h"
#include "offline/check/search_bounds.h"
#include "offline/check/unit_order.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

class SerialSearch {
 public:
  SerialSearch(const OrientationProblem& problem, const PartialOrder& units,
               const std::vector<uint32_t>& class_of, ExecutionModel* model,
               const OrientationBounds& bounds)
      : problem_(problem),
        class_of_(class_of),
        model_(*model),
        bounds_(bounds),
        units_(units),
        // A state costs a look at every unit.
        max_states_(std::min(bounds.max_steps * kTriesPerStep,
                             kWorkFactor * bounds.max_work / (units.size() + 1))) {
    units_.limit_work(kWorkFactor * bounds.max_work);
  }

  Answer run() {
    if (!take_over_nodes() || !draw_rules()) {
      return Answer::kNo;
    }
    // By the ends of the units, then by their beginnings: no more is needed for most components.
    for (const bool ends : {true, false}) {
      const std::vector<uint32_t> priority = priorities(ends);
      std::vector<uint32_t> place;
      const Answer answer = units_.exhausted() ? Answer::kUnknown : order(priority, &place);
      if (answer != Answer::kYes || follows(place)) {
        return answer;
      }
      const auto greedy = order_greedily(problem_, units_, class_of_, priority, &model_);
      if (greedy && follows(*greedy)) {
        return Answer::kYes;
      }
    }
    Completion completion(problem_, &model_, &units_, class_of_);
    uint64_t steps = tries_ / kTriesPerStep;
    const Answer answer = completion.run(&steps, bounds_.max_steps);
    tries_ = std::max(tries_, steps * kTriesPerStep);
    found_ = completion.found();
    return answer;
  }

  uint64_t steps() const { return tries_ / kTriesPerStep; }
  uint64_t words() const { return units_.work(); }
  const std::vector<bool>& found() const { return found_; }

 private:
  // What the nodes say of the units already; false: the directed edges contradict it.
  bool take_over_nodes() {
    for (size_t i = 0; i < problem_.open.size(); ++i) {
      const bool forward = model_.implied(model_.forward[i]);
      if (forward || model_.implied(model_.backward[i])) {
        const uint32_t from = class_of_[forward ? problem_.open[i].from : problem_.open[i].to];
        const uint32_t to = class_of_[forward ? problem_.open[i].to : problem_.open[i].from];
        if (from != to && !units_.insert(from, to)) {
          return false;
        }
      }
    }
    return true;
  }

  // False: no order of the units satisfies all rules.
  bool draw_rules() {
    std::vector<ReadsFrom> rules;
    for (const ReadsFrom& rule : problem_.rules) {
      const ReadsFrom of_units = {class_of_[rule.read], class_of_[rule.write],
                                  class_of_[rule.other]};
      if (of_units.read != of_units.write && of_units.read != of_units.other &&
          of_units.write != of_units.other) {
        rules.push_back(of_units);
      }
    }
    const auto key = [](const ReadsFrom& rule) {
      return std::tie(rule.write, rule.other, rule.read);
    };
    spend(16 * rules.size());
    std::sort(rules.begin(), rules.end(),
              [&](const ReadsFrom& a, const ReadsFrom& b) { return key(a) < key(b); });
    rules.erase(
        std::unique(rules.begin(), rules.end(),
                    [&](const ReadsFrom& a, const ReadsFrom& b) { return key(a) == key(b); }),
        rules.end());
    for (const ReadsFrom& rule : rules) {
      units_.imply({rule.write, rule.other}, {rule.read, rule.other});
      units_.imply({rule.other, rule.read}, {rule.other, rule.write});
    }
    if (!units_.settle()) {
      return false;
    }
    for (const ReadsFrom& rule : rules) {
      if (!units_.reaches(rule.other, rule.write) && !units_.reaches(rule.read, rule.other)) {
        rules_.push_back(rule);
        either_.push_back({{rule.other, rule.write}, {rule.read, rule.other}});
      }
    }
    return true;
  }

  std::vector<uint32_t> priorities(bool ends) const {
    std::vector<uint32_t> priority(units_.size(), ends ? 0 : 0xFFFFFFFFU);
    for (uint32_t i = 0; i < problem_.events.size(); ++i) {
      uint32_t& event = priority[class_of_[i]];
      event = ends ? std::max(event, problem_.events[i]) : std::min(event, problem_.events[i]);
    }
    return priority;
  }

  // An order of the units that satisfies all rules.
  Answer order(const std::vector<uint32_t>& priority, std::vector<uint32_t>* place) {
    const size_t mark = units_.mark();
    *place = RuleSearch(&units_, either_, priority).extend_lazily(&tries_);
    const bool unclear = units_.exhausted();
    units_.undo(mark);
    if (unclear) {
      return Answer::kUnknown;
    }
    return place->empty() ? order_units(units_, rules_, priority, {max_states_, bounds_.max_bytes},
                                        place, &tries_)
                          : Answer::kYes;
  }

  // The open edges as the units are placed: some execution has them.
  bool follows(const std::vector<uint32_t>& place) {
    found_.clear();
    spend(4 * problem_.open.size());
    for (size_t i = 0; i < problem_.open.size(); ++i) {
      const MixedEdge& open = problem_.open[i];
      const bool forward = place[class_of_[open.from]] < place[class_of_[open.to]];
      const auto& ways = model_.direction(i, forward);
      if (class_of_[open.from] != class_of_[open.to] &&
          std::all_of(ways.begin(), ways.end(),
                      [&](const StepOrder::Way& way) { return model_.impossible(way); })) {
        return false;
      }
      found_.push_back(forward);
    }
    return is_valid(problem_, found_);
  }

  const OrientationProblem& problem_;
  const std::vector<uint32_t>& class_of_;
  ExecutionModel& model_;
  const OrientationBounds& bounds_;
  GrowingOrder units_;
  uint64_t max_states_;
  std::vector<ReadsFrom> rules_;     // of units, that the order leaves open
  std::vector<EitherOrder> either_;  // the same
  uint64_t tries_ = 0;
  std::vector<bool> found_;
};

}  // namespace

Answer find_serial(const OrientationProblem& problem, const PartialOrder& units,
                   const std::vector<uint32_t>& class_of, ExecutionModel* model,
                   const OrientationBounds& bounds, uint64_t* steps, uint64_t* words,
                   std::vector<bool>* found) {
  SerialSearch search(problem, units, class_of, model, bounds);
  const Answer answer = search.run();
  *steps += search.steps();
  *words += search.words();
  if (answer == Answer::kYes) {
    *found = search.found();
  }
  return answer;
}

}  // namespace tsomon
