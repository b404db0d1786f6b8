#include "offline/explore/graph_search.h"

#include <algorithm>
#include <utility>

namespace tsomon::explore {

void GraphSearch::add_alternatives(const std::shared_ptr<const Graph>& graph, uint32_t from,
                                   int32_t revisited) {
  std::vector<Alternative> alternatives = alternatives_.of(*graph, from, revisited);
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

void GraphSearch::make_ready() {
  constexpr size_t kReady = 16;
  Ready next;
  next.request.model = model_;
  next.request.waiting_is_final = true;
  if (!started_) {
    started_ = true;
    next.graph = std::make_shared<Graph>();
    ready_.push_back(std::move(next));
    return;
  }
  std::vector<Request> expected;
  while (ready_.size() < kReady && !stack_.empty()) {
    Node& node = stack_.back();
    next.graph = std::make_shared<Graph>();
    next.request.prefix.clear();
    next.request.waiting = 0;
    alternatives_.make(*node.graph, node.alternatives.back(), next.graph.get(),
                       &next.request.prefix);
    next.revisited = node.alternatives.back().revisited;
    node.alternatives.pop_back();
    if (node.alternatives.empty()) {
      stack_.pop_back();
    }
    for (const GraphEvent& event : next.graph->events) {
      next.request.waiting |= event.waits ? uint64_t{1} << event.thread : 0;
    }
    expected.push_back(next.request);
    ready_.push_back(std::move(next));
    next = {nullptr, expected.back(), -1};
  }
  std::reverse(ready_.begin(), ready_.end());
  program_.expect(expected);
}

GraphSearch::Result GraphSearch::next() {
  if (ready_.empty()) {
    make_ready();
  }
  Result result;
  const std::shared_ptr<Graph> graph = std::move(ready_.back().graph);
  const Request request = std::move(ready_.back().request);
  const int32_t revisited = ready_.back().revisited;
  ready_.pop_back();
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
    result.stale = result.stale || (event.waits && event.source != graph->newest_for(event));
  }
  last_ = graph;
  result.graph = last_.get();
  if (whole) {
    add_alternatives(graph, from, revisited);
  }
  return result;
}

}  // namespace tsomon::explore
