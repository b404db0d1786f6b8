#include "offline/check/execution_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tso/order/reachability.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kDropped = 0xFFFFFFFFU;
constexpr uint64_t kMostLooks = 20'000;  // at pairs of accesses, of a pass over the choices

// Fewer than all when the edges have a cycle.
std::vector<uint32_t> sort_nodes(uint32_t nodes, const std::vector<Edge>& edges,
                                 const Adjacency& successors) {
  std::vector<uint32_t> missing(nodes, 0);
  for (const Edge& edge : edges) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> sorted;
  for (uint32_t i = 0; i < nodes; ++i) {
    if (missing[i] == 0) {
      sorted.push_back(i);
    }
  }
  for (size_t at = 0; at < sorted.size(); ++at) {
    for (const uint32_t next : successors.successors(sorted[at])) {
      if (--missing[next] == 0) {
        sorted.push_back(next);
      }
    }
  }
  return sorted;
}

// The order of the selected nodes that the edges make, through all the others; nothing if the edges
// have a cycle. `place` of a node that is not selected is kDropped.
std::optional<PartialOrder> close(const std::vector<uint32_t>& place, uint32_t selected,
                                  const std::vector<Edge>& edges) {
  const auto nodes = static_cast<uint32_t>(place.size());
  const Adjacency successors(nodes, edges);
  const std::vector<uint32_t> sorted = sort_nodes(nodes, edges, successors);
  if (sorted.size() != nodes) {
    return std::nullopt;
  }
  const size_t words = (selected + 63) / 64;
  std::vector<uint64_t> rows(nodes * words, 0);
  PartialOrder order(selected);
  for (auto at = sorted.rbegin(); at != sorted.rend(); ++at) {
    uint64_t* const row = rows.data() + *at * words;
    spend(words * (1 + successors.successors(*at).size()));
    for (const uint32_t next : successors.successors(*at)) {
      const uint64_t* const theirs = rows.data() + next * words;
      for (size_t word = 0; word < words; ++word) {
        row[word] |= theirs[word];
      }
    }
    if (const uint32_t mine = place[*at]; mine != kDropped) {
      row[mine / 64] |= uint64_t{1} << (mine % 64);
      order.set_row(mine, {row, words});
    }
  }
  return order;
}

// The order of the steps, and of their effects as events. Where the effect of an event is one step:
// not of loads that may be forwarded, whose effect is their issue or their store's commit,
// whichever is later. Those keep what the steps say of them.
std::optional<PartialOrder> close_steps(const OrientationProblem& problem,
                                        const std::vector<uint32_t>& place, uint32_t selected) {
  auto order = close(place, selected, problem.steps.edges);
  if (!order) {
    return std::nullopt;
  }
  std::vector<bool> forwarded(problem.events.size(), false);
  for (size_t i = 0; i < problem.open.size(); ++i) {
    // Two alternatives: the second event is such a load.
    forwarded[problem.open[i].to] =
        forwarded[problem.open[i].to] || problem.steps.before[i].size() > 1;
    forwarded[problem.open[i].from] =
        forwarded[problem.open[i].from] || problem.steps.after[i].size() > 1;
  }
  std::vector<Edge> added;
  for (uint32_t e = 0; e < problem.events.size(); ++e) {
    if (forwarded[e]) {
      continue;
    }
    const uint32_t from = place[problem.step_of[e].second];
    problem.event_order.for_each_after(e, [&](uint32_t f) {
      const uint32_t to = place[problem.step_of[f].second];
      if (!forwarded[f] && !order->reaches(from, to)) {
        added.push_back({from, to});
      }
    });
  }
  if (added.empty()) {
    return order;
  }
  for (uint32_t node = 0; node < selected; ++node) {
    order->for_each_after(node, [&](uint32_t later) {
      if (later != node) {
        added.push_back({node, later});
      }
    });
  }
  std::vector<uint32_t> all(selected);
  std::iota(all.begin(), all.end(), 0U);
  return close(all, selected, added);
}

// The nodes that open edges and rules are about, by their places among them.
std::vector<uint32_t> select_nodes(const OrientationProblem& problem, uint32_t* selected) {
  std::vector<uint32_t> place(problem.steps.nodes, kDropped);
  if (place.empty()) {
    return place;
  }
  const auto select = [&](const Edge& edge) { place[edge.from] = place[edge.to] = 0; };
  for (const auto* direction : {&problem.steps.before, &problem.steps.after}) {
    for (const StepOrder::Alternatives& alternatives : *direction) {
      for (const StepOrder::Way& way : alternatives) {
        std::for_each(way.begin(), way.end(), select);
      }
    }
  }
  for (const EitherOrder& either : problem.steps.either) {
    select(either.a);
    select(either.b);
  }
  for (const auto& [issue, effect] : problem.step_of) {
    place[effect] = 0;
  }
  *selected = 0;
  for (uint32_t& at : place) {
    at = at == kDropped ? kDropped : (*selected)++;
  }
  return place;
}

// No cycle of the order and the edges. Depth first, whole words of the order at a time.
bool acyclic(const PartialOrder& order, const Adjacency& chosen) {
  struct Frame {
    uint32_t element;
    size_t word;    // of the order's row
    size_t chosen;  // edge
  };
  const uint32_t n = order.size();
  std::vector<uint64_t> unseen((n + 63) / 64, ~uint64_t{0});
  std::vector<uint64_t> on_path(unseen.size(), 0);
  const auto bit = [](uint32_t element) { return uint64_t{1} << (element % 64); };
  std::vector<Frame> path;
  const auto enter = [&](uint32_t element) {
    unseen[element / 64] &= ~bit(element);
    // What it reaches is on the path: a cycle.
    const auto row = order.row_of(element);
    spend(2 * row.size() + chosen.successors(element).size());
    for (size_t word = 0; word < row.size(); ++word) {
      if ((row[word] & on_path[word]) != 0) {
        return false;
      }
    }
    for (const uint32_t next : chosen.successors(element)) {
      if ((on_path[next / 64] & bit(next)) != 0) {
        return false;
      }
    }
    on_path[element / 64] |= bit(element);
    path.push_back({element, 0, 0});
    return true;
  };
  for (uint32_t root = 0; root < n; ++root) {
    if ((unseen[root / 64] & bit(root)) == 0) {
      continue;
    }
    if (!enter(root)) {
      return false;
    }
    while (!path.empty()) {
      Frame& frame = path.back();
      const auto row = order.row_of(frame.element);
      while (frame.word < row.size() && (row[frame.word] & unseen[frame.word]) == 0) {
        ++frame.word;
      }
      const auto edges = chosen.successors(frame.element);
      while (frame.chosen < edges.size() &&
             (unseen[edges[frame.chosen] / 64] & bit(edges[frame.chosen])) == 0) {
        ++frame.chosen;
      }
      if (frame.word < row.size()) {
        const uint64_t next = row[frame.word] & unseen[frame.word];
        if (!enter(static_cast<uint32_t>(frame.word * 64) +
                   static_cast<uint32_t>(__builtin_ctzll(next)))) {
          return false;
        }
      } else if (frame.chosen < edges.size()) {
        if (!enter(edges[frame.chosen])) {
          return false;
        }
      } else {
        on_path[frame.element / 64] &= ~bit(frame.element);
        path.pop_back();
      }
    }
  }
  return true;
}

}  // namespace

bool ExecutionModel::implied(const Alternatives& alternatives) const {
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const auto& alternative) {
    return std::all_of(alternative.begin(), alternative.end(),
                       [&](const Edge& edge) { return order.reaches(edge.from, edge.to); });
  });
}

bool ExecutionModel::impossible(const StepOrder::Way& way) const {
  return std::any_of(way.begin(), way.end(),
                     [&](const Edge& edge) { return order.reaches(edge.to, edge.from); });
}

bool ExecutionModel::insert(const StepOrder::Way& way) {
  return std::all_of(way.begin(), way.end(),
                     [&](const Edge& edge) { return order.insert(edge.from, edge.to); });
}

bool ExecutionModel::insert_last(const Alternatives& alternatives, bool* inserted) {
  const StepOrder::Way* left = nullptr;
  for (const StepOrder::Way& way : alternatives) {
    if (impossible(way)) {
      continue;
    }
    if (left != nullptr) {
      return true;
    }
    left = &way;
  }
  if (left == nullptr) {
    return false;
  }
  *inserted = true;
  return insert(*left);
}

namespace {

// One load under what is ordered so far.
class ReadNow {
 public:
  ReadNow(ExecutionModel* model, const ReadChoice& choice) : model_(*model), choice_(choice) {}

  bool draw(bool* changed) {
    changed_ = changed;
    const uint32_t n = choice_.elements;
    spend(uint64_t{n} * n);
    sources_.clear();
    for (uint32_t s = 1; s <= choice_.sources; ++s) {
      if (!before(0, s) && !overwritten(s)) {
        sources_.push_back(s);
      }
    }
    bool initial = choice_.initial;
    for (uint32_t other = 1; other < n && initial; ++other) {
      initial = !before(other, 0);
    }
    if (sources_.empty() && !initial) {
      return false;
    }
    const auto all = [&](const auto& predicate) {
      return std::all_of(sources_.begin(), sources_.end(), predicate);
    };
    for (const uint32_t s : sources_) {
      // Comes before all others that it may have read / after them.
      if (!initial && all([&](uint32_t w) { return w == s || before(s, w); }) && !put(s, 0)) {
        return false;
      }
      if (!initial && all([&](uint32_t w) { return w == s || before(w, s); })) {
        for (uint32_t other = 1; other < n; ++other) {
          if (other != s && before(other, 0) && !put(other, s)) {
            return false;
          }
        }
      }
    }
    // What comes after all that it may have read comes after it: all others, if only the initial
    // value is left.
    for (uint32_t other = 1; other < n; ++other) {
      if (all([&](uint32_t w) { return w != other && before(w, other); }) && !put(0, other)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool before(uint32_t i, uint32_t j) const {
    const int32_t known = choice_.at(i, j);
    if (known < 0) {
      return known == ReadChoice::kBefore;
    }
    return model_.implied(model_.direction(static_cast<size_t>(known) / 2, known % 2 == 0));
  }
  bool overwritten(uint32_t s) const {
    for (uint32_t other = 1; other < choice_.elements; ++other) {
      if (other != s && before(other, 0) && before(s, other)) {
        return true;
      }
    }
    return false;
  }
  // False: that is impossible.
  bool put(uint32_t i, uint32_t j) {
    if (before(i, j)) {
      return true;
    }
    if (before(j, i)) {
      return false;
    }
    const int32_t known = choice_.at(i, j);
    if (known < 0) {
      return true;  // nothing that is searched says so
    }
    return model_.insert_last(model_.direction(static_cast<size_t>(known) / 2, known % 2 == 0),
                              changed_);
  }

  ExecutionModel& model_;
  const ReadChoice& choice_;
  bool* changed_ = nullptr;
  std::vector<uint32_t> sources_;
};

}  // namespace

bool ExecutionModel::draw_values() {
  for (bool again = true; again && !order.exhausted();) {
    again = false;
    for (const ReadChoice& choice : choices) {
      if (!ReadNow(this, choice).draw(&again)) {
        return false;
      }
    }
  }
  return true;
}

std::optional<ExecutionModel> make_execution_model(const OrientationProblem& problem,
                                                   uint64_t max_work) {
  const bool by_steps = problem.steps.nodes > 0;
  uint32_t selected = 0;
  const std::vector<uint32_t> place = select_nodes(problem, &selected);
  auto closed =
      by_steps ? close_steps(problem, place, selected) : std::optional(problem.event_order);
  if (!closed) {
    return std::nullopt;
  }
  ExecutionModel model{GrowingOrder(*closed), {}, {}, {}, {}, {}};
  model.order.limit_work(max_work);
  const auto effect = [&](uint32_t e) { return by_steps ? place[problem.step_of[e].second] : e; };
  if (by_steps) {
    const auto placed = [&](Edge edge) { return Edge{place[edge.from], place[edge.to]}; };
    for (const EitherOrder& either : problem.steps.either) {
      model.either.push_back({placed(either.a), placed(either.b)});
    }
    model.forward = problem.steps.before;
    model.backward = problem.steps.after;
    for (auto* direction : {&model.forward, &model.backward}) {
      for (StepOrder::Alternatives& alternatives : *direction) {
        for (StepOrder::Way& way : alternatives) {
          std::transform(way.begin(), way.end(), way.begin(), placed);
        }
      }
    }
    for (uint32_t node = 0; node < selected; ++node) {
      model.priority.push_back(node);
    }
  } else {
    model.forward.reserve(problem.open.size());
    model.backward.reserve(problem.open.size());
    for (const MixedEdge& open : problem.open) {
      model.forward.push_back({StepOrder::Way{{open.from, open.to}}});
      model.backward.push_back({StepOrder::Way{{open.to, open.from}}});
    }
    model.priority = problem.events;
  }
  for (const ReadsFrom& rule : problem.rules) {
    model.either.push_back(
        {{effect(rule.other), effect(rule.write)}, {effect(rule.read), effect(rule.other)}});
  }
  for (const EitherOrder& either : model.either) {
    model.order.imply({either.a.to, either.a.from}, either.b);
    model.order.imply({either.b.to, either.b.from}, either.a);
  }
  if (!model.order.settle()) {
    return std::nullopt;
  }
  uint64_t looks = 0;
  const auto too_many =
      std::find_if(problem.choices.begin(), problem.choices.end(), [&](const ReadChoice& choice) {
        looks += choice.order.size();
        return looks > kMostLooks;
      });
  model.choices = {problem.choices.begin(), too_many};
  if (!model.draw_values()) {
    return std::nullopt;
  }
  return model;
}

bool is_valid(const OrientationProblem& problem, const std::vector<bool>& orientation) {
  const auto n = static_cast<uint32_t>(problem.events.size());
  std::vector<Edge> chosen;
  chosen.reserve(problem.open.size());
  for (size_t i = 0; i < problem.open.size(); ++i) {
    const MixedEdge& open = problem.open[i];
    chosen.push_back(orientation[i] ? Edge{open.from, open.to} : Edge{open.to, open.from});
  }
  return acyclic(problem.event_order, Adjacency(n, chosen)) &&
         (!problem.accept || problem.accept(orientation));
}

}  // namespace tsomon
