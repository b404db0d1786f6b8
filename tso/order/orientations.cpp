#include "tso/order/orientations.h"

#include <algorithm>

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

enum class Goal : uint8_t { kCyclic, kAcyclic, kAny };
enum Direction : uint8_t { kOpen, kForward, kBackward };

struct State {
  PartialOrder events;
  PartialOrder classes;
  std::vector<Direction> direction;
  bool cyclic = false;
};

}  // namespace

ClassOrder order_classes(const OrientationProblem& problem, const OrientationBounds& bounds) {
  ClassOrder result;
  result.position.assign(problem.class_count, kNone);
  uint32_t selected = 0;
  for (const uint32_t node : problem.class_of) {
    if (result.position[node] == kNone) {
      result.position[node] = selected++;
    }
  }
  std::vector<Edge> edges;
  std::vector<uint32_t> missing(problem.class_count, 0);
  for (const MixedEdge& edge : problem.classes) {
    if (edge.from != edge.to) {
      edges.push_back({edge.from, edge.to});
      ++missing[edge.to];
    }
  }
  const Adjacency successors(problem.class_count, edges);
  std::vector<uint32_t> topological;
  for (uint32_t node = 0; node < problem.class_count; ++node) {
    if (missing[node] == 0) {
      topological.push_back(node);
    }
  }
  for (size_t i = 0; i < topological.size(); ++i) {
    for (const uint32_t next : successors.successors(topological[i])) {
      if (--missing[next] == 0) {
        topological.push_back(next);
      }
    }
  }
  result.cyclic = topological.size() != problem.class_count;
  // One row a class, bits only for the selected ones.
  const size_t words = (selected + 63) / 64;
  result.too_large = problem.event_order.size() != problem.events.size() ||
                     problem.class_count * words * sizeof(uint64_t) > bounds.max_bytes ||
                     (edges.size() + problem.class_count + selected) * words > bounds.max_work;
  if (result.cyclic || result.too_large) {
    return result;
  }
  std::vector<uint64_t> rows(problem.class_count * words, 0);
  result.order.emplace(selected);
  for (size_t i = topological.size(); i-- > 0;) {
    const uint32_t node = topological[i];
    uint64_t* row = rows.data() + node * words;
    spend(words * (1 + successors.successors(node).size()));
    for (const uint32_t next : successors.successors(node)) {
      const uint64_t* theirs = rows.data() + next * words;
      for (size_t word = 0; word < words; ++word) {
        row[word] |= theirs[word];
      }
    }
    if (const uint32_t at = result.position[node]; at != kNone) {
      row[at / 64] |= uint64_t{1} << (at % 64);
      result.order->set_row(at, {row, words});
    }
  }
  return result;
}

namespace {

class Search {
 public:
  Search(const OrientationProblem& problem, const ClassOrder& classes,
         const OrientationBounds& bounds)
      : problem_(problem), classes_(classes), bounds_(bounds) {}

  Answer find(Goal goal) {
    goal_ = goal;
    steps_ = 0;
    work_ = 0;
    bound_hit_ = false;
    State state{problem_.event_order, classes_.order ? *classes_.order : PartialOrder(0),
                std::vector<Direction>(problem_.open.size(), kOpen), classes_.cyclic};
    const bool found = descend(std::move(state), 0);
    all_steps_ += steps_;
    all_work_ += work_;
    if (found) {
      return Answer::kYes;
    }
    return bound_hit_ ? Answer::kUnknown : Answer::kNo;
  }

  const std::vector<bool>& found() const { return found_; }
  uint64_t all_steps() const { return all_steps_; }
  uint64_t all_work() const { return all_work_; }

 private:
  uint32_t class_at(uint32_t event) const { return classes_.position[problem_.class_of[event]]; }

  // Orients open edge i; false when that contradicts the order of the events.
  bool orient(State* state, size_t i, Direction direction) {
    uint32_t from = problem_.open[i].from;
    uint32_t to = problem_.open[i].to;
    if (direction == kBackward) {
      std::swap(from, to);
    }
    if (!state->events.insert(from, to, &work_)) {
      return false;
    }
    state->direction[i] = direction;
    if (!state->cyclic && problem_.class_of[from] != problem_.class_of[to]) {
      state->cyclic = !state->classes.insert(class_at(from), class_at(to), &work_);
    }
    return true;
  }

  bool worked(uint64_t amount) {
    work_ += amount;
    spend(amount);
    bound_hit_ = bound_hit_ || work_ > bounds_.max_work;
    return !bound_hit_;
  }

  // What follows from the decisions so far; false: they contradict each other, or a bound is hit.
  bool propagate(State* state) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const ReadsFrom& rule : problem_.rules) {
        if (!worked(2)) {
          return false;
        }
        if (state->events.reaches(rule.write, rule.other) &&
            !state->events.reaches(rule.read, rule.other)) {
          if (!state->events.insert(rule.read, rule.other, &work_)) {
            return false;
          }
          changed = true;
        }
        if (state->events.reaches(rule.other, rule.read) &&
            !state->events.reaches(rule.other, rule.write)) {
          if (!state->events.insert(rule.other, rule.write, &work_)) {
            return false;
          }
          changed = true;
        }
      }
      for (size_t i = 0; i < problem_.open.size(); ++i) {
        if (!worked(1)) {
          return false;
        }
        if (state->direction[i] != kOpen) {
          continue;
        }
        const MixedEdge& edge = problem_.open[i];
        const bool forward = state->events.reaches(edge.from, edge.to);
        if (forward || state->events.reaches(edge.to, edge.from)) {
          orient(state, i, forward ? kForward : kBackward);
          changed = true;
        }
      }
    }
    return true;
  }

  // Edges that can still close a cycle of classes.
  std::vector<bool> useful_edges(const State& state) {
    std::vector<MixedEdge> edges;
    worked(8 * (problem_.open.size() + problem_.classes.size() + problem_.class_count));
    for (size_t i = 0; i < problem_.open.size(); ++i) {
      MixedEdge edge{problem_.class_of[problem_.open[i].from],
                     problem_.class_of[problem_.open[i].to], state.direction[i] == kOpen};
      if (state.direction[i] == kBackward) {
        std::swap(edge.from, edge.to);
      }
      edges.push_back(edge);
    }
    edges.insert(edges.end(), problem_.classes.begin(), problem_.classes.end());
    std::vector<bool> useful = split_into_components(problem_.class_count, edges).edge_on_cycle;
    useful.resize(problem_.open.size());
    return useful;
  }

  // The edge to decide next and the direction to try first; kNone: all are decided.
  struct Choice {
    size_t edge = kNone;
    Direction first = kForward;
    bool hopeless = false;
  };

  Choice choose(const State& state) {
    Choice choice;
    const bool hunting = goal_ == Goal::kCyclic && !state.cyclic;
    std::vector<bool> useful;
    if (hunting) {
      useful = useful_edges(state);
    }
    for (size_t i = 0; i < problem_.open.size(); ++i) {
      if (state.direction[i] != kOpen || (hunting && !useful[i])) {
        continue;
      }
      if (choice.edge == kNone) {
        choice.edge = i;
        choice.first = problem_.hint[i] != 0 ? kForward : kBackward;
        if (!hunting) {
          break;
        }
      }
      const uint32_t from = class_at(problem_.open[i].from);
      const uint32_t to = class_at(problem_.open[i].to);
      if (from != to && state.classes.reaches(to, from)) {
        return {i, kForward, false};
      }
      if (from != to && state.classes.reaches(from, to)) {
        return {i, kBackward, false};
      }
    }
    choice.hopeless = hunting && choice.edge == kNone;
    return choice;
  }

  bool descend(State state, uint64_t depth_bytes) {
    while (true) {
      if (!propagate(&state)) {
        return false;
      }
      if (goal_ == Goal::kAcyclic && state.cyclic) {
        return false;
      }
      const Choice choice = choose(state);
      if (choice.hopeless) {
        return false;
      }
      if (choice.edge == kNone) {
        found_.clear();
        for (const Direction direction : state.direction) {
          found_.push_back(direction == kForward);
        }
        ++steps_;
        if (!problem_.accept) {
          return true;
        }
        return worked(problem_.accept_work) && problem_.accept(found_);
      }
      const uint64_t held =
          depth_bytes + state.events.bytes() + state.classes.bytes() + state.direction.size();
      if (++steps_ > bounds_.max_steps || held > bounds_.max_bytes ||
          !worked((held - depth_bytes) / sizeof(uint64_t))) {
        bound_hit_ = true;
        return false;
      }
      State branch = state;
      if (orient(&branch, choice.edge, choice.first) && descend(std::move(branch), held)) {
        return true;
      }
      if (bound_hit_ ||
          !orient(&state, choice.edge, choice.first == kForward ? kBackward : kForward)) {
        return false;
      }
    }
  }

  const OrientationProblem& problem_;
  const ClassOrder& classes_;
  const OrientationBounds& bounds_;
  Goal goal_ = Goal::kAny;
  uint64_t steps_ = 0;
  uint64_t all_steps_ = 0;
  uint64_t work_ = 0;
  uint64_t all_work_ = 0;
  bool bound_hit_ = false;
  std::vector<bool> found_;
};

}  // namespace

OrientationResult enumerate_orientations(const OrientationProblem& problem,
                                         const OrientationBounds& bounds) {
  OrientationResult result;
  const ClassOrder classes = order_classes(problem, bounds);
  if (classes.cyclic) {
    result.acyclic = Answer::kNo;  // directed edges alone
    result.cyclic = Answer::kYes;
  }
  if (classes.too_large) {
    return result;
  }
  Search search(problem, classes, bounds);
  const auto keep = [&] {
    result.has_orientation = true;
    result.orientation = search.found();
  };
  if (classes.cyclic) {
    if (search.find(Goal::kAny) == Answer::kYes) {
      keep();
    }
    result.steps = search.all_steps();
    result.work = search.all_work();
    return result;
  }
  result.acyclic = search.find(Goal::kAcyclic);
  if (result.acyclic == Answer::kYes) {
    keep();
  }
  result.cyclic = search.find(Goal::kCyclic);
  if (result.cyclic == Answer::kYes) {
    keep();
  }
  result.steps = search.all_steps();
  result.work = search.all_work();
  return result;
}

}  // namespace tsomon
