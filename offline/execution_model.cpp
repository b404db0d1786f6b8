#include "offline/execution_model.h"

#include <algorithm>
#include <utility>

#include "tso/reachability.h"

namespace tsomon {
namespace {

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

// Nothing if the edges have a cycle.
std::optional<PartialOrder> close(uint32_t nodes, const std::vector<Edge>& edges) {
  const Adjacency successors(nodes, edges);
  const std::vector<uint32_t> sorted = sort_nodes(nodes, edges, successors);
  if (sorted.size() != nodes) {
    return std::nullopt;
  }
  PartialOrder order(nodes);
  for (auto at = sorted.rbegin(); at != sorted.rend(); ++at) {
    for (const uint32_t next : successors.successors(*at)) {
      if (!order.reaches(*at, next)) {
        order.merge(*at, next);
      }
    }
  }
  return order;
}

// Where the effect of an event is one step: not of loads that may be forwarded, whose effect is
// their issue or their store's commit, whichever is later. Those keep what the steps say of them.
std::optional<PartialOrder> close_steps(const OrientationProblem& problem) {
  auto order = close(problem.steps.nodes, problem.steps.edges);
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
  std::vector<Edge> edges = problem.steps.edges;
  const size_t known = edges.size();
  for (uint32_t e = 0; e < problem.events.size(); ++e) {
    for (uint32_t f = 0; f < problem.events.size(); ++f) {
      const uint32_t from = problem.step_of[e].second;
      const uint32_t to = problem.step_of[f].second;
      if (e != f && !forwarded[e] && !forwarded[f] && problem.event_order.reaches(e, f) &&
          !order->reaches(from, to)) {
        edges.push_back({from, to});
      }
    }
  }
  return edges.size() == known ? std::move(order) : close(problem.steps.nodes, edges);
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

std::optional<ExecutionModel> make_execution_model(const OrientationProblem& problem) {
  const bool by_steps = problem.steps.nodes > 0;
  auto closed = by_steps ? close_steps(problem) : std::optional(problem.event_order);
  if (!closed) {
    return std::nullopt;
  }
  ExecutionModel model{GrowingOrder(*closed), {}, {}, {}, {}};
  const auto issue = [&](uint32_t e) { return by_steps ? problem.step_of[e].first : e; };
  const auto effect = [&](uint32_t e) { return by_steps ? problem.step_of[e].second : e; };
  if (by_steps) {
    model.either = problem.steps.either;
    model.forward = problem.steps.before;
    model.backward = problem.steps.after;
    for (uint32_t node = 0; node < problem.steps.nodes; ++node) {
      model.priority.push_back(node);
    }
  } else {
    for (const MixedEdge& open : problem.open) {
      model.forward.push_back({StepOrder::Way{{open.from, open.to}}});
      model.backward.push_back({StepOrder::Way{{open.to, open.from}}});
    }
    model.priority = problem.events;
  }
  for (const ReadsFrom& rule : problem.rules) {
    model.either.push_back(
        {{effect(rule.other), effect(rule.write)}, {issue(rule.read), effect(rule.other)}});
  }
  for (const EitherOrder& either : model.either) {
    model.order.imply({either.a.to, either.a.from}, either.b);
    model.order.imply({either.b.to, either.b.from}, either.a);
  }
  if (!model.order.settle()) {
    return std::nullopt;
  }
  return model;
}

bool is_valid(const OrientationProblem& problem, const std::vector<bool>& orientation) {
  const auto n = static_cast<uint32_t>(problem.events.size());
  std::vector<Edge> chosen;
  std::vector<uint32_t> missing(n, 0);
  for (size_t i = 0; i < problem.open.size(); ++i) {
    const MixedEdge& open = problem.open[i];
    chosen.push_back(orientation[i] ? Edge{open.from, open.to} : Edge{open.to, open.from});
    ++missing[chosen.back().to];
  }
  const Adjacency successors(n, chosen);
  for (uint32_t e = 0; e < n; ++e) {
    problem.event_order.for_each_after(e, [&](uint32_t f) { missing[f] += e == f ? 0 : 1; });
  }
  std::vector<uint32_t> sorted;
  const auto arrive = [&](uint32_t e) {
    if (--missing[e] == 0) {
      sorted.push_back(e);
    }
  };
  for (uint32_t e = 0; e < n; ++e) {
    if (missing[e] == 0) {
      sorted.push_back(e);
    }
  }
  for (size_t at = 0; at < sorted.size(); ++at) {
    const uint32_t e = sorted[at];
    const auto next = successors.successors(e);
    std::for_each(next.begin(), next.end(), arrive);
    problem.event_order.for_each_after(e, [&](uint32_t f) {
      if (f != e) {
        arrive(f);
      }
    });
  }
  return sorted.size() == n && (!problem.accept || problem.accept(orientation));
}

}  // namespace tsomon
