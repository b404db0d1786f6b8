#include "offline/explore/dependencies.h"

#include <array>

namespace tsomon::explore {

void Dependencies::analyse(const Graph& graph) {
  graph_ = &graph;
  std::array<int32_t, kMaxThreads + 1> created{};
  std::array<int32_t, kMaxThreads + 1> ended{};
  std::array<int32_t, kMaxThreads + 1> last{};
  created.fill(-1);
  ended.fill(-1);
  last.fill(-1);
  for (size_t e = 0; e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    if (event.op == Op::kCreate) {
      created.at(static_cast<size_t>(event.a)) = static_cast<int32_t>(e);
    } else if (event.op == Op::kEnd) {
      ended.at(event.thread) = static_cast<int32_t>(e);
    }
  }
  before_.resize(graph.events.size());
  ended_.resize(graph.events.size());
  for (size_t e = 0; e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    int32_t& newest = last.at(event.thread);
    before_[e] = newest >= 0 ? newest : created.at(event.thread);
    ended_[e] = event.op == Op::kJoin ? ended.at(static_cast<size_t>(event.a)) : -1;
    newest = static_cast<int32_t>(e);
  }
}

void Dependencies::find(uint32_t event, int32_t source) {
  found_.assign(graph_->events.size(), 0);
  todo_.clear();
  const auto reach = [this](int32_t e) {
    if (e >= 0 && found_[static_cast<size_t>(e)] == 0) {
      found_[static_cast<size_t>(e)] = 1;
      todo_.push_back(e);
    }
  };
  const auto reach_from = [&](size_t e, int32_t read) {
    reach(before_[e]);
    reach(ended_[e]);
    reach(read);
  };
  reach_from(event, source);
  while (!todo_.empty()) {
    const auto e = static_cast<size_t>(todo_.back());
    todo_.pop_back();
    reach_from(e, graph_->events[e].source);
  }
}

}  // namespace tsomon::explore
