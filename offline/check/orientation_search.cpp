#include "offline/check/orientation_search.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "offline/check/completion.h"
#include "offline/check/execution_model.h"
#include "offline/check/fenced_check.h"
#include "offline/check/growing_order.h"
#include "offline/check/rule_search.h"
#include "offline/check/search_bounds.h"
#include "offline/check/serial_search.h"
#include "offline/check/short_cycle.h"
#include "tso/order/reachability.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kFar = 0xFFFFFFFFU;
constexpr uint64_t kWorkPerTry = 64;

// The orientation, if it is accepted; else whatever `completion` finds.
Answer accept(const OrientationProblem& problem, std::vector<bool>* orientation,
              Completion* completion, uint64_t* steps, uint64_t max_steps) {
  if (is_valid(problem, *orientation)) {
    return Answer::kYes;
  }
  const Answer other = completion->run(steps, max_steps);
  if (other == Answer::kYes) {
    *orientation = completion->found();
  }
  return other;
}

// A complete orientation that agrees with the order of the nodes and is accepted.
Answer accept_extension(const OrientationProblem& problem, ExecutionModel& model,
                        Completion* completion, uint64_t* steps, uint64_t max_steps,
                        std::vector<bool>* found) {
  RuleSearch rules(&model.order, model.either, model.priority);
  const size_t mark = model.order.mark();
  uint64_t tries = 0;
  std::vector<uint32_t> place = rules.extend_lazily(&tries);
  *steps += tries / kTriesPerStep;
  if (place.empty()) {
    const Answer answer = rules.resolve(steps, max_steps);
    if (answer != Answer::kYes) {
      return answer;
    }
    place = rules.places();
  }
  model.order.undo(mark);
  if (model.order.exhausted()) {
    return Answer::kUnknown;  // not all that follows has been drawn
  }
  found->clear();
  for (const auto& alternatives : model.forward) {
    found->push_back(
        std::any_of(alternatives.begin(), alternatives.end(), [&](const auto& alternative) {
          return std::all_of(alternative.begin(), alternative.end(),
                             [&](const Edge& edge) { return place[edge.from] < place[edge.to]; });
        }));
  }
  return accept(problem, found, completion, steps, max_steps);
}

// Cycles of units with open edges, from few to many.
class CycleSearch {
 public:
  // The order of the model is changed and left as it was found.
  CycleSearch(const OrientationProblem& problem, ExecutionModel* model, const GrowingOrder& classes,
              const std::vector<uint32_t>& class_of, const OrientationBounds& bounds)
      : problem_(problem),
        model_(*model),
        classes_(classes),
        class_of_(class_of),
        max_tries_(bounds.max_steps * kTriesPerStep),
        max_own_work_(bounds.max_work),
        completion_(problem, model, nullptr, class_of),
        distance_(classes.size()) {}

  Answer run() {
    if (const Answer answer = close_plainly(); answer != Answer::kNo) {
      return answer;
    }
    known_ = model_.order.current();
    make_arcs();
    make_groups();
    for (uint32_t length = 1;; ++length) {
      cut_ = false;
      for (const Group& group : groups_) {
        const Answer answer = follow(group, length);
        if (answer != Answer::kNo) {
          return answer;
        }
      }
      if (!cut_) {
        return Answer::kNo;
      }
    }
  }

  uint64_t steps() const { return tries_ / kTriesPerStep + 1; }
  // Of what does not change the order.
  uint64_t work() const { return own_work_; }
  const std::vector<bool>& found() const { return found_; }

 private:
  // An open edge in one direction, in one of the ways in which it can be.
  struct Arc {
    uint32_t open;
    const StepOrder::Way* edges;  // of the model
    uint32_t leaves;              // units
    uint32_t enters;
  };

  // The arcs from one unit to another, by their open edges.
  struct Group {
    uint32_t leaves;
    uint32_t enters;
    std::span<const Arc> arcs;  // of arcs_
  };

  std::span<const Group> leaving(uint32_t unit) const {
    return {groups_.data() + leaving_[unit], groups_.data() + leaving_[unit + 1]};
  }

  // The first open edge that closes a cycle of directed edges, and which the order allows: enough
  // for most violations, and nothing has to be prepared for it.
  Answer close_plainly() {
    for (uint32_t i = 0; i < problem_.open.size(); ++i) {
      spend(2);
      const MixedEdge& open = problem_.open[i];
      const uint32_t from = class_of_[open.from];
      const uint32_t to = class_of_[open.to];
      for (const bool forward : {true, false}) {
        if (from == to || !classes_.reaches(forward ? to : from, forward ? from : to)) {
          continue;
        }
        for (const StepOrder::Way& way : model_.direction(i, forward)) {
          if (model_.impossible(way)) {
            continue;
          }
          if (++tries_ > max_tries_ || model_.order.exhausted()) {
            return Answer::kUnknown;
          }
          const size_t mark = model_.order.mark();
          const bool fits = model_.insert(way);
          const Answer answer = fits ? complete() : Answer::kNo;
          model_.order.undo(mark);
          if (fits) {
            return answer;
          }
        }
      }
    }
    return Answer::kNo;
  }

  void make_arcs() {
    for (uint32_t i = 0; i < problem_.open.size(); ++i) {
      const MixedEdge& open = problem_.open[i];
      for (const bool forward : {true, false}) {
        const uint32_t leaves = class_of_[forward ? open.from : open.to];
        const uint32_t enters = class_of_[forward ? open.to : open.from];
        for (const StepOrder::Way& way : model_.direction(i, forward)) {
          if (leaves != enters && !model_.impossible(way)) {
            arcs_.push_back({i, &way, leaves, enters});
          }
        }
      }
    }
  }

  // By a unit; those with the same one stay as they are.
  void sort_arcs(uint32_t Arc::*unit) {
    std::vector<size_t> place(classes_.size() + 1, 0);
    for (const Arc& arc : arcs_) {
      ++place[arc.*unit + 1];
    }
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Arc> sorted(arcs_.size());
    for (const Arc& arc : arcs_) {
      sorted[place[arc.*unit]++] = arc;
    }
    arcs_ = std::move(sorted);
  }

  // Sorts the arcs by their units, and drops those that are not needed: between the same two units,
  // one that implies another; of two that imply each other the first is kept.
  void make_groups() {
    const auto units = [](const Arc& arc) { return std::pair(arc.leaves, arc.enters); };
    sort_arcs(&Arc::enters);
    sort_arcs(&Arc::leaves);
    const uint32_t count = classes_.size();
    leaving_.assign(count + 1, 0);
    std::vector<Edge> ends;
    auto kept = arcs_.begin();
    for (auto first = arcs_.begin(); first != arcs_.end();) {
      const auto group = kept;
      auto arc = first;
      for (; arc != arcs_.end() && units(*arc) == units(*first); ++arc) {
        spend(1 + 2 * static_cast<uint64_t>(kept - group));
        if (std::none_of(group, kept, [&](const Arc& other) { return implies(*arc, other); })) {
          const Arc added = *arc;
          kept =
              std::remove_if(group, kept, [&](const Arc& other) { return implies(other, added); });
          *kept++ = added;
        }
      }
      first = arc;
      groups_.push_back({group->leaves, group->enters, {group, kept}});
      ++leaving_[group->leaves + 1];
      ends.push_back({group->enters, group->leaves});
    }
    arcs_.erase(kept, arcs_.end());  // at the end: the groups stay where they are
    std::partial_sum(leaving_.begin(), leaving_.end(), leaving_.begin());
    arriving_ = Adjacency(count, ends);
    ends.clear();
    for (uint32_t i = 0; i < arcs_.size(); ++i) {
      ends.push_back({arcs_[i].enters, i});
    }
    arcs_into_ = Adjacency(count, ends);
    entered_.assign(count / 64 + 1, 0);
    for (const Arc& arc : arcs_) {
      entered_[arc.enters / 64] |= uint64_t{1} << (arc.enters % 64);
    }
  }

  bool implies(const Arc& arc, const Arc& other) const {
    return std::all_of(other.edges->begin(), other.edges->end(), [&](const Edge& weak) {
      return std::any_of(arc.edges->begin(), arc.edges->end(), [&](const Edge& strong) {
        return model_.order.reaches(weak.from, strong.from) &&
               model_.order.reaches(strong.to, weak.to);
      });
    });
  }

  // What comes after `arc` leads to `next` as an order of nodes, not only of units. A cycle all of
  // whose open edges follow each other so is one of nodes, which no execution has.
  bool linked(const Arc& arc, const Arc& next) const {
    return std::all_of(arc.edges->begin(), arc.edges->end(), [&](const Edge& edge) {
      return std::any_of(next.edges->begin(), next.edges->end(),
                         [&](const Edge& later) { return known_.reaches(edge.to, later.from); });
    });
  }

  // A cycle starts behind a place where it goes back inside a unit: of these, with the open edge
  // that comes first in the list.
  bool may_start(const Arc& arc) {
    if (arc.edges->size() != 1) {
      return goes_back(arc);
    }
    // Whatever leads to such an arc, only where it begins matters: many arcs begin there.
    may_start_.resize(model_.order.size());
    MayStart& known = may_start_[arc.edges->front().from];
    if (!known.asked || known.leaves != arc.leaves) {
      known = {arc.leaves, true, goes_back(arc)};
    }
    return known.may;
  }
  // Some arc enters a unit before `arc` behind which the cycle has to go back to reach it.
  bool goes_back(const Arc& arc) {
    own_work_ += entered_.size();
    spend(entered_.size());
    return classes_.any_before(arc.leaves, entered_, [&](uint32_t unit) {
      const auto ends = arcs_into_.successors(unit);
      own_work_ += ends.size();
      spend(ends.size());
      return std::any_of(ends.begin(), ends.end(),
                         [&](uint32_t last) { return !linked(arcs_[last], arc); });
    });
  }
  bool may_follow(const Arc& arc) const {
    const Arc& first = path_.front();
    return arc.open != first.open && (arc.open > first.open || linked(path_.back(), arc));
  }

  // How many open edges at least lead from `unit` to `target`. While cycles with one are looked
  // for (`most` is 0) it is 1 for all greater numbers: for most components no more has to be known.
  uint32_t distance(uint32_t unit, uint32_t target, uint32_t most) {
    if (classes_.reaches(unit, target)) {
      return 0;
    }
    return most == 0 && distance_[target].empty() ? 1 : distances(target)[unit];
  }

  // From each unit to `target`.
  const std::vector<uint32_t>& distances(uint32_t target) {
    std::vector<uint32_t>& distance = distance_[target];
    if (!distance.empty()) {
      return distance;
    }
    distance.assign(classes_.size(), kFar);
    queue_.clear();
    far_.assign(classes_.size() / 64 + 1, ~uint64_t{0});
    own_work_ += classes_.size();
    const auto reach = [&](uint32_t unit, uint32_t steps) {
      ++own_work_;
      // What comes before a unit that has a distance has been reached with it, or before.
      if (distance[unit] != kFar) {
        return;
      }
      own_work_ += far_.size();
      spend(far_.size());
      classes_.take_before(unit, &far_, [&](uint32_t before) {
        distance[before] = steps;
        queue_.push_back(before);
      });
    };
    reach(target, 0);
    for (size_t at = 0; at < queue_.size(); ++at) {
      const uint32_t steps = distance[queue_[at]] + 1;
      for (const uint32_t unit : arriving_.successors(queue_[at])) {
        reach(unit, steps);
      }
    }
    return distance;
  }

  // Takes each arc of a group, looks for the rest of the cycle, and takes it back.
  Answer follow(const Group& group, uint32_t length) {
    spend(1 + group.arcs.size());
    const bool starts = path_.empty();
    const auto taken = static_cast<uint32_t>(path_.size()) + 1;
    const uint32_t rest = distance(group.enters, starts ? group.leaves : path_.front().leaves,
                                   length - std::min(length, taken));
    if (tries_ > max_tries_ || model_.order.exhausted() || ++own_work_ > max_own_work_) {
      return Answer::kUnknown;
    }
    if (rest == kFar || (rest == 0 && taken < length)) {
      return Answer::kNo;  // no cycle, or one that had its turn
    }
    if (taken + rest > length) {
      cut_ = true;
      return Answer::kNo;
    }
    for (const Arc& arc : group.arcs) {
      ++own_work_;
      if (starts ? !may_start(arc) : !may_follow(arc)) {
        continue;
      }
      if (rest == 0 && linked(arc, starts ? arc : path_.front())) {
        continue;
      }
      if (++tries_ > max_tries_) {
        return Answer::kUnknown;
      }
      const size_t mark = model_.order.mark();
      Answer answer = Answer::kNo;
      if (model_.insert(*arc.edges)) {
        path_.push_back(arc);
        answer = rest == 0 ? complete() : extend(length);
        path_.pop_back();
      }
      model_.order.undo(mark);
      if (answer != Answer::kNo) {
        return answer;
      }
    }
    return Answer::kNo;
  }

  Answer extend(uint32_t length) {
    std::vector<uint32_t> units;
    spend(classes_.size());
    classes_.for_each_after(path_.back().enters, [&](uint32_t unit) {
      if (!leaving(unit).empty() && !short_cut(unit)) {
        units.push_back(unit);
      }
    });
    for (const uint32_t unit : units) {
      for (const Group& group : leaving(unit)) {
        if (comes_back(group.enters)) {
          continue;
        }
        const Answer answer = follow(group, length);
        if (answer != Answer::kNo) {
          return answer;
        }
      }
    }
    return Answer::kNo;
  }

  // An earlier open edge of the path leads there already, by directed edges.
  bool short_cut(uint32_t unit) const {
    return std::any_of(path_.begin(), path_.end() - 1,
                       [&](const Arc& earlier) { return classes_.reaches(earlier.enters, unit); });
  }

  // Directed edges lead back to the middle of the path: a cycle with fewer open edges.
  bool comes_back(uint32_t unit) const {
    return std::any_of(path_.begin() + 1, path_.end(),
                       [&](const Arc& earlier) { return classes_.reaches(unit, earlier.leaves); });
  }

  Answer complete() {
    if (!model_.draw_values()) {
      return Answer::kNo;
    }
    uint64_t steps = tries_ / kTriesPerStep;
    const Answer answer = accept_extension(problem_, model_, &completion_, &steps,
                                           max_tries_ / kTriesPerStep, &found_);
    tries_ = std::max(tries_, steps * kTriesPerStep);
    return answer;
  }

  const OrientationProblem& problem_;
  ExecutionModel& model_;
  const GrowingOrder& classes_;
  const std::vector<uint32_t>& class_of_;
  PartialOrder known_;  // before any open edge
  uint64_t max_tries_;
  uint64_t max_own_work_;  // for what does not change the order
  uint64_t own_work_ = 0;
  uint64_t tries_ = 0;
  bool cut_ = false;  // a longer cycle may exist
  Completion completion_;
  std::vector<Arc> arcs_;
  std::vector<Group> groups_;                    // by the units that they leave
  std::vector<uint32_t> leaving_;                // unit -> its first group
  Adjacency arriving_;                           // unit -> units that groups lead from
  Adjacency arcs_into_;                          // unit -> arcs
  std::vector<uint64_t> entered_;                // a bit for each unit that arcs lead to
  std::vector<std::vector<uint32_t>> distance_;  // by target; empty: not computed yet
  std::vector<uint32_t> queue_;                  // inside distances()
  std::vector<uint64_t> far_;                    // inside distances(): without a distance so far
  struct MayStart {
    uint32_t leaves = 0;
    bool asked = false;
    bool may = false;
  };
  std::vector<MayStart> may_start_;  // by the node that an arc with one edge begins at
  std::vector<Arc> path_;
  std::vector<bool> found_;
};

OrientationResult search(const OrientationProblem& problem, const OrientationBounds& bounds) {
  OrientationResult result;
  const ClassOrder classes = order_classes(problem, bounds);
  if (classes.cyclic) {
    result.acyclic = Answer::kNo;  // directed edges alone
    result.cyclic = Answer::kYes;
  }
  if (classes.too_large) {
    if (!classes.cyclic && problem.before) {
      result.closing = find_short_cycle(problem, bounds.max_work, &result.work);
      result.cyclic = result.closing ? Answer::kYes : Answer::kUnknown;
    }
    return result;
  }
  std::vector<uint32_t> class_of;
  for (const uint32_t node : problem.class_of) {
    class_of.push_back(classes.position[node]);
  }
  auto model = make_execution_model(problem, kWorkFactor * bounds.max_work);
  if (!model) {
    if (!classes.cyclic) {
      result.acyclic = Answer::kNo;
      result.cyclic = Answer::kNo;
    }
    return result;
  }
  const auto keep = [&](const std::vector<bool>& orientation) {
    result.has_orientation = true;
    result.orientation = orientation;
  };
  std::vector<bool> found;
  uint64_t words = 0;
  if (classes.cyclic) {
    Completion completion(problem, &*model, nullptr, class_of);
    if (accept_extension(problem, *model, &completion, &result.steps, bounds.max_steps, &found) ==
        Answer::kYes) {
      keep(found);
    }
    return result;
  }
  result.acyclic = find_serial(problem, *classes.order, class_of, &*model, bounds, &result.steps,
                               &words, &found);
  if (result.acyclic == Answer::kYes) {
    keep(found);
  }
  model->order.limit_work(kWorkFactor * bounds.max_work);
  const GrowingOrder units(*classes.order);
  CycleSearch search(problem, &*model, units, class_of, bounds);
  result.cyclic = search.run();
  result.steps += search.steps();
  if (result.cyclic == Answer::kYes) {
    keep(search.found());
  }
  result.work = (words + model->order.work()) / kWorkFactor + search.work();
  return result;
}

}  // namespace

OrientationResult search_orientations(const OrientationProblem& problem,
                                      const OrientationBounds& bounds) {
  // What a step costs: kTriesPerStep edges, each with some rows of the orders, or a look at all
  // open edges.
  const uint64_t step_work =
      kTriesPerStep * (kWorkPerTry + problem.events.size() / 64) + problem.open.size() / 8;
  OrientationBounds own = bounds;
  own.max_steps = std::min(bounds.max_steps, bounds.max_work / step_work);
  OrientationResult result = search(problem, own);
  result.work = std::max(result.work, result.steps * step_work);
  return result;
}

namespace {

AnalysisOptions with_exact_search(AnalysisOptions options) {
  options.search = search_orientations;
  options.fenced = check_fenced_component;
  return options;
}

}  // namespace

Result<Analysis> analyse_exactly(const Trace& trace, const AnalysisOptions& options) {
  return analyse(trace, with_exact_search(options));
}

Result<Analysis> analyse_exactly(const IndexedTrace& indexed, const AnalysisOptions& options) {
  return analyse(indexed, with_exact_search(options));
}

}  // namespace tsomon
