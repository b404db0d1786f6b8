#include "offline/explore/graph_search.h"

#include <utility>

namespace tsomon::explore {

void GraphSearch::add_alternatives(const std::shared_ptr<const Graph>& graph, uint32_t from) {
  std::vector<Alternative> alternatives = alternatives_.of(*graph, from);
  if (!alternatives.empty()) {
    stack_.push_back({graph, std::move(alternatives)});
  }
}

size_t GraphSearch::pending() const {
  size_t count = 0;
  for (const Node& node : stack_) {
    count += node.alternatives.size();
  }
  return count;
}

void GraphSearch::begin(const Subtree& subtree) {
  if (subtree.graph == nullptr) {
    return;
  }
  started_ = true;
  stack_.clear();
  stack_.push_back(
      {std::make_shared<Graph>(builder_.adopt(*subtree.graph)), {subtree.alternative}});
}

std::optional<GraphSearch::Subtree> GraphSearch::give() {
  if (stack_.empty() || (stack_.size() == 1 && stack_.front().alternatives.size() < 2)) {
    return std::nullopt;
  }
  Node& node = stack_.front();
  Subtree subtree{node.graph, node.alternatives.front()};
  node.alternatives.erase(node.alternatives.begin());
  if (node.alternatives.empty()) {
    stack_.erase(stack_.begin());
  }
  return subtree;
}

GraphSearch::Result GraphSearch::next() {
  Result result;
  auto graph = std::make_shared<Graph>();
  Request request;
  request.model = model_;
  request.waiting_is_final = true;
  if (started_) {
    Node& node = stack_.back();
    const Alternative alternative = node.alternatives.back();
    node.alternatives.pop_back();
    alternatives_.make(*node.graph, alternative, graph.get(), &request.prefix);
    if (node.alternatives.empty()) {
      stack_.pop_back();
    }
    for (const GraphEvent& event : graph->events) {
      request.waiting |= event.waits ? uint64_t{1} << event.thread : 0;
    }
  }
  started_ = true;
  const auto from = static_cast<uint32_t>(graph->events.size());
  const Run& run = program_.run(request);
  result.run = &run;
  const bool whole = run.end != End::kDiverged && run.end != End::kFailed &&
                     run.end != End::kStopped && run.end != End::kHung;
  if (whole && !builder_.extend(graph.get(), run, request.prefix.size())) {
    // Said by the one who asks: the run did something else than before.
    result.run = nullptr;
    return result;
  }
  for (const Step& step : run.steps) {
    if (!step.waits) {
      result.schedule.push_back(step.choice);
    }
  }
  for (const GraphEvent& event : graph->events) {
    result.stale = result.stale || (event.waits && event.source != graph->newest(event.cell));
  }
  last_ = graph;
  result.graph = last_.get();
  if (whole) {
    add_alternatives(graph, from);
  }
  return result;
}

}  // namespace tsomon::explore
