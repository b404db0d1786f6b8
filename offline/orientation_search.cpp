#include "offline/orientation_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "offline/completion.h"
#include "offline/growing_order.h"

namespace tsomon {
namespace {

constexpr uint32_t kFar = 0xFFFFFFFFU;

// Cycles of units with open edges, from few to many.
class CycleSearch {
 public:
  // The order of the events is changed and left as it was found.
  CycleSearch(const OrientationProblem& problem, GrowingOrder* events, const GrowingOrder& classes,
              const std::vector<uint32_t>& class_of, uint64_t max_steps)
      : problem_(problem),
        events_(*events),
        classes_(classes),
        max_tries_(max_steps * kTriesPerStep),
        completion_(problem, events, nullptr, class_of),
        leaving_(classes.size()),
        arriving_(classes.size()),
        distance_(classes.size()) {
    for (uint32_t i = 0; i < problem.open.size(); ++i) {
      const MixedEdge& open = problem.open[i];
      for (const bool forward : {true, false}) {
        const uint32_t from = forward ? open.from : open.to;
        const uint32_t to = forward ? open.to : open.from;
        if (class_of[from] != class_of[to] && !events_.reaches(to, from)) {
          leaving_[class_of[from]].push_back(static_cast<uint32_t>(arcs_.size()));
          arriving_[class_of[to]].push_back(static_cast<uint32_t>(arcs_.size()));
          arcs_.push_back({i, from, to, class_of[from], class_of[to]});
        }
      }
    }
  }

  Answer run() {
    for (uint32_t length = 1;; ++length) {
      cut_ = false;
      for (uint32_t first = 0; first < arcs_.size(); ++first) {
        const Answer answer = start(first, length);
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
  const std::vector<bool>& found() const { return completion_.found(); }

 private:
  // An open edge in one direction.
  struct Arc {
    uint32_t open;
    uint32_t from;  // events
    uint32_t to;
    uint32_t leaves;  // units
    uint32_t enters;
  };

  // How many open edges at least lead from each unit to `target`.
  const std::vector<uint32_t>& distances(uint32_t target) {
    std::vector<uint32_t>& distance = distance_[target];
    if (!distance.empty()) {
      return distance;
    }
    distance.assign(classes_.size(), kFar);
    std::vector<uint32_t> queue;
    const auto reach = [&](uint32_t unit, uint32_t steps) {
      classes_.for_each_before(unit, [&](uint32_t before) {
        if (distance[before] == kFar) {
          distance[before] = steps;
          queue.push_back(before);
        }
      });
    };
    reach(target, 0);
    for (size_t at = 0; at < queue.size(); ++at) {
      const uint32_t steps = distance[queue[at]] + 1;
      for (const uint32_t arc : arriving_[queue[at]]) {
        reach(arcs_[arc].leaves, steps);
      }
    }
    return distance;
  }

  Answer start(uint32_t first, uint32_t length) {
    path_.clear();
    return follow(first, length);
  }

  // Takes an arc, looks for the rest of the cycle, and takes it back.
  Answer follow(uint32_t index, uint32_t length) {
    const Arc& arc = arcs_[index];
    const uint32_t target = path_.empty() ? arc.leaves : arcs_[path_.front()].leaves;
    const uint32_t rest = distances(target)[arc.enters];
    if (rest == kFar) {
      return Answer::kNo;
    }
    if (path_.size() + 1 + rest > length) {
      cut_ = true;
      return Answer::kNo;
    }
    if (rest == 0 && path_.size() + 1 < length) {
      return Answer::kNo;  // this cycle had its turn
    }
    if (++tries_ > max_tries_) {
      return Answer::kUnknown;
    }
    const size_t mark = events_.mark();
    Answer answer = Answer::kNo;
    if (events_.insert(arc.from, arc.to)) {
      path_.push_back(index);
      answer = rest == 0 ? complete() : extend(length);
      path_.pop_back();
    }
    events_.undo(mark);
    return answer;
  }

  Answer extend(uint32_t length) {
    const Arc last = arcs_[path_.back()];
    const Arc first = arcs_[path_.front()];
    std::vector<uint32_t> units;
    classes_.for_each_after(last.enters, [&](uint32_t unit) {
      if (!leaving_[unit].empty() && !short_cut(unit)) {
        units.push_back(unit);
      }
    });
    for (const uint32_t unit : units) {
      for (const uint32_t next : leaving_[unit]) {
        if (arcs_[next].open <= first.open || comes_back(arcs_[next].enters)) {
          continue;
        }
        const Answer answer = follow(next, length);
        if (answer != Answer::kNo) {
          return answer;
        }
      }
    }
    return Answer::kNo;
  }

  // An earlier open edge of the path leads there already, by directed edges.
  bool short_cut(uint32_t unit) const {
    return std::any_of(path_.begin(), path_.end() - 1, [&](uint32_t earlier) {
      return classes_.reaches(arcs_[earlier].enters, unit);
    });
  }

  // Directed edges lead back to the middle of the path: a cycle with fewer open edges.
  bool comes_back(uint32_t unit) const {
    return std::any_of(path_.begin() + 1, path_.end(), [&](uint32_t earlier) {
      return classes_.reaches(unit, arcs_[earlier].leaves);
    });
  }

  Answer complete() {
    uint64_t steps = tries_ / kTriesPerStep;
    const Answer answer = completion_.run(&steps, max_tries_ / kTriesPerStep);
    tries_ = std::max(tries_, steps * kTriesPerStep);
    return answer;
  }

  const OrientationProblem& problem_;
  GrowingOrder& events_;
  const GrowingOrder& classes_;
  uint64_t max_tries_;
  uint64_t tries_ = 0;
  bool cut_ = false;  // a longer cycle may exist
  Completion completion_;
  std::vector<Arc> arcs_;
  std::vector<std::vector<uint32_t>> leaving_;   // arcs, by unit
  std::vector<std::vector<uint32_t>> arriving_;  // arcs, by unit
  std::vector<std::vector<uint32_t>> distance_;  // by target; empty: not computed yet
  std::vector<uint32_t> path_;                   // arcs
};

}  // namespace

OrientationResult search_orientations(const OrientationProblem& problem,
                                      const OrientationBounds& bounds) {
  OrientationResult result;
  const ClassOrder classes = order_classes(problem);
  if (!classes.order) {
    result.acyclic = Answer::kNo;  // directed edges alone
    result.cyclic = Answer::kYes;
  }
  const uint64_t bytes =
      static_cast<uint64_t>(problem.events.size()) * problem.events.size() / 2;  // with the units'
  if (problem.events.size() > bounds.max_events || bytes > bounds.max_bytes) {
    return result;
  }
  std::vector<uint32_t> class_of;
  for (const uint32_t node : problem.class_of) {
    class_of.push_back(classes.position[node]);
  }
  GrowingOrder events(problem.event_order);
  for (const ReadsFrom& rule : problem.rules) {
    events.imply({rule.write, rule.other}, {rule.read, rule.other});
    events.imply({rule.other, rule.read}, {rule.other, rule.write});
  }
  if (!events.settle()) {
    if (classes.order) {
      result.acyclic = Answer::kNo;
      result.cyclic = Answer::kNo;
    }
    return result;
  }
  const auto keep = [&](const std::vector<bool>& orientation) {
    result.has_orientation = true;
    result.orientation = orientation;
  };
  if (!classes.order) {
    Completion completion(problem, &events, nullptr, class_of);
    if (completion.run(&result.steps, bounds.max_steps) == Answer::kYes) {
      keep(completion.found());
    }
    return result;
  }
  GrowingOrder units(*classes.order);
  Completion completion(problem, &events, &units, class_of);
  result.acyclic = completion.run(&result.steps, bounds.max_steps);
  if (result.acyclic == Answer::kYes) {
    keep(completion.found());
  }
  CycleSearch search(problem, &events, units, class_of, bounds.max_steps);
  result.cyclic = search.run();
  result.steps += search.steps();
  if (result.cyclic == Answer::kYes) {
    keep(search.found());
  }
  return result;
}

Result<Analysis> analyse_exactly(const Trace& trace, AnalysisOptions options) {
  options.search = search_orientations;
  return analyse(trace, options);
}

}  // namespace tsomon
