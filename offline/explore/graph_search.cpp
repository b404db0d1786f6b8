#include "offline/explore/graph_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::explore {
namespace {

// The first `count` events, with the orders of the cells among them.
Graph beginning(const Graph& whole, uint32_t count) {
  Graph graph;
  graph.events.assign(whole.events.begin(), whole.events.begin() + count);
  graph.cells = whole.cells;
  for (GraphCell& cell : graph.cells) {
    std::erase_if(cell.order, [count](int32_t e) { return static_cast<uint32_t>(e) >= count; });
  }
  return graph;
}

void remove_write(Graph* graph, int32_t e) {
  GraphEvent& event = graph->events[e];
  std::erase(graph->cells[event.cell].order, e);
  event.writes = false;
}

size_t place_behind(const Graph& graph, uint32_t cell, int32_t source) {
  if (source == kInitial) {
    return 0;
  }
  const auto& order = graph.cells[cell].order;
  return static_cast<size_t>(std::find(order.begin(), order.end(), source) - order.begin()) + 1;
}

void insert_write(Graph* graph, int32_t e, size_t place) {
  GraphEvent& event = graph->events[e];
  auto& order = graph->cells[event.cell].order;
  order.insert(order.begin() + static_cast<ptrdiff_t>(place), e);
  event.writes = true;
}

// The load reads this write: what it writes itself follows. Its own write is not in the order.
void read_from(Graph* graph, int32_t e, int32_t source) {
  GraphEvent& event = graph->events[e];
  event.source = source;
  event.read = graph->value_of(source, event.cell);
  event.waits = false;
  if (!is_locked(event.op)) {
    return;
  }
  const Effect effect = effect_of(*graph, event, source);
  event.waits = !effect.enabled;
  event.written = effect.value;
  if (effect.enabled && effect.writes) {
    insert_write(graph, e, place_behind(*graph, event.cell, source));
  }
}

// What every event depends on: program order, reads-from, starts and ends of threads.
class Dependencies {
 public:
  explicit Dependencies(const Graph& graph) : graph_(graph) {
    for (size_t e = 0; e < graph.events.size(); ++e) {
      place_[{graph.events[e].thread, graph.events[e].index}] = static_cast<int32_t>(e);
      if (graph.events[e].op == Op::kCreate) {
        creations_[graph.events[e].a] = static_cast<int32_t>(e);
      } else if (graph.events[e].op == Op::kEnd) {
        ends_[graph.events[e].thread] = static_cast<int32_t>(e);
      }
    }
  }

  // All that `e` depends on, without itself.
  std::vector<bool> of(int32_t e) const {
    std::vector<bool> found(graph_.events.size(), false);
    std::vector<int32_t> todo;
    const auto reach = [&](int32_t before) {
      if (before >= 0 && !found[before]) {
        found[before] = true;
        todo.push_back(before);
      }
    };
    for_each(e, reach);
    while (!todo.empty()) {
      const int32_t next = todo.back();
      todo.pop_back();
      for_each(next, reach);
    }
    return found;
  }

 private:
  template <typename Reach>
  void for_each(int32_t e, const Reach& reach) const {
    const GraphEvent& event = graph_.events[e];
    if (event.index > 0) {
      reach(place_.at({event.thread, event.index - 1}));
    } else if (const auto found = creations_.find(event.thread); found != creations_.end()) {
      reach(found->second);
    }
    reach(event.source);
    if (event.op == Op::kJoin) {
      if (const auto found = ends_.find(event.a); found != ends_.end()) {
        reach(found->second);
      }
    }
  }

  const Graph& graph_;
  std::map<std::pair<uint16_t, uint32_t>, int32_t> place_;
  std::map<Value, int32_t> creations_;
  std::map<Value, int32_t> ends_;
};

// Whether `e` is as the search adds it: a load of the newest write, or the newest write, among what
// came before it and what the revisiting store depends on.
bool added_maximally(const Graph& graph, int32_t e, int32_t store,
                     const std::vector<bool>& needed) {
  const auto previous = [&](int32_t other) {
    return other != store && (other <= e || needed[other]);
  };
  const GraphEvent& event = graph.events[e];
  if (!has_cell(event.op)) {
    return true;
  }
  if (event.writes) {
    for (int32_t other = 0; other < static_cast<int32_t>(graph.events.size()); ++other) {
      if (other != e && previous(other) && graph.events[other].source == e) {
        return false;
      }
    }
  }
  int32_t newest = kInitial;
  for (const int32_t write : graph.cells[event.cell].order) {
    newest = write != e && previous(write) ? write : newest;
  }
  if (reads(event.op)) {
    return event.source == newest;
  }
  const auto& order = graph.cells[event.cell].order;
  return newest == kInitial ||
         std::find(order.begin(), order.end(), newest) < std::find(order.begin(), order.end(), e);
}

// `load` reads `store`, the last event, and nothing is left of what neither came before the load
// nor is needed; false: another graph does this. The store is not in the order of its cell if it is
// a plain one.
bool revisit(const Graph& graph, int32_t load, const std::vector<bool>& needed, Graph* made) {
  const auto store = static_cast<int32_t>(graph.events.size()) - 1;
  std::vector<int32_t> number(graph.events.size(), -1);
  for (int32_t e = 0; e <= store; ++e) {
    const bool kept = e < load || e == store || needed[e];
    if (!kept || e == load) {
      if (!added_maximally(graph, e, store, needed)) {
        return false;
      }
    }
    if (kept || e == load) {
      number[e] = static_cast<int32_t>(made->events.size());
      made->events.push_back(graph.events[e]);
    }
  }
  for (GraphEvent& event : made->events) {
    if (event.source >= 0) {
      if (number[event.source] < 0 && &event != &made->events[number[load]]) {
        return false;
      }
      event.source = number[event.source];
    }
  }
  made->cells = graph.cells;
  for (GraphCell& cell : made->cells) {
    std::erase_if(cell.order, [&](int32_t e) { return number[e] < 0; });
    for (int32_t& e : cell.order) {
      e = number[e];
    }
  }
  if (made->events[number[load]].writes) {
    remove_write(made, number[load]);
  }
  made->events[number[load]].source = kReadsNone;
  return true;
}

}  // namespace

// Everything about the alternative but its place in the order of its cell and its consistency is
// checked when it is found.
bool GraphSearch::make(const Graph& whole, const Alternative& alternative, Graph* made,
                       std::vector<Choice>* schedule) const {
  Graph graph = beginning(whole, alternative.event + 1);
  const auto last = static_cast<int32_t>(alternative.event);
  const bool store = graph.events[last].op == Op::kStore;
  if (store) {
    remove_write(&graph, last);
  } else if (alternative.source != graph.events[last].source) {
    if (graph.events[last].writes) {
      remove_write(&graph, last);
    }
    read_from(&graph, last, alternative.source);
  }
  if (alternative.revisited < 0) {
    *made = std::move(graph);
    if (store) {
      insert_write(made, last, alternative.position);
    }
  } else {
    // A store writes, wherever in the order it will be.
    graph.events[last].writes = true;
    const std::vector<bool> needed = Dependencies(graph).of(last);
    if (needed[alternative.revisited] || !revisit(graph, alternative.revisited, needed, made)) {
      return false;
    }
    const auto kept = static_cast<int32_t>(made->events.size()) - 1;
    if (store) {
      if (alternative.position > made->cells[made->events[kept].cell].order.size()) {
        return false;
      }
      insert_write(made, kept, alternative.position);
    }
    // The events in front of the load have kept their numbers.
    read_from(made, alternative.revisited, kept);
  }
  return linearize(*made, model_, schedule);
}

void GraphSearch::add_of_event(const Graph& graph, uint32_t e, Node* node) const {
  const GraphEvent& event = graph.events[e];
  if (!has_cell(event.op)) {
    return;
  }
  std::vector<int32_t> writes = {kInitial};
  for (const int32_t write : graph.cells[event.cell].order) {
    if (write < static_cast<int32_t>(e)) {
      writes.push_back(write);
    }
  }
  const bool store = event.op == Op::kStore;
  const auto offer = [&](const Alternative& alternative) {
    spend(e + 1);
    Graph made;
    if (make(graph, alternative, &made, nullptr)) {
      node->alternatives.push_back(alternative);
    }
  };
  // Forward.
  if (store) {
    for (uint32_t position = 0; position + 1 < writes.size(); ++position) {
      offer({e, kReadsNone, position, -1});
    }
  }
  std::vector<int32_t> sources = {kReadsNone};
  if (!store) {
    sources = writes;
    for (const int32_t source : writes) {
      if (source == event.source) {
        continue;
      }
      // One that waits for what has happened already waits for ever.
      if (!is_locked(event.op) || effect_of(graph, event, source).enabled) {
        offer({e, source, 0, -1});
      }
    }
  }
  if (!store && !is_locked(event.op)) {
    return;
  }
  // Backward.
  for (const int32_t source : sources) {
    if (!store) {
      const Effect effect = effect_of(graph, event, source);
      if (!effect.enabled || !effect.writes) {
        continue;
      }
    }
    for (uint32_t load = 0; load < e; ++load) {
      const GraphEvent& other = graph.events[load];
      if (!reads(other.op) || other.cell != event.cell || other.thread == event.thread) {
        continue;
      }
      const auto positions = static_cast<uint32_t>(store ? writes.size() : 1);
      for (uint32_t position = 0; position < positions; ++position) {
        offer({e, source, position, static_cast<int32_t>(load)});
      }
    }
  }
}

void GraphSearch::add_alternatives(const std::shared_ptr<const Graph>& graph, uint32_t from) {
  Node node{graph, {}};
  for (uint32_t e = from; e < graph->events.size(); ++e) {
    add_of_event(*graph, e, &node);
  }
  if (!node.alternatives.empty()) {
    stack_.push_back(std::move(node));
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
    make(*node.graph, alternative, graph.get(), &request.prefix);
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
  if (whole && !builder_.extend(graph.get(), run, request.prefix.size(), model_)) {
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
