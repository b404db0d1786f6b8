#include "offline/explore/step_graph.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace tsomon::explore {

void in_program_order(const Graph& graph, std::vector<uint32_t>* events,
                      std::vector<uint32_t>* begins) {
  begins->assign(2, 0);
  for (const GraphEvent& event : graph.events) {
    if (begins->size() < event.thread + 2U) {
      begins->resize(event.thread + 2U, 0);
    }
    ++(*begins)[event.thread + 1U];
  }
  std::partial_sum(begins->begin(), begins->end(), begins->begin());
  constexpr uint32_t kFree = UINT32_MAX;
  events->assign(graph.events.size(), kFree);
  bool placed = true;
  for (uint32_t e = 0; placed && e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    const uint64_t at = uint64_t{(*begins)[event.thread]} + event.index;
    placed = at < (*begins)[event.thread + 1U] && (*events)[at] == kFree;
    if (placed) {
      (*events)[at] = e;
    }
  }
  if (placed) {
    return;
  }
  std::iota(events->begin(), events->end(), 0U);
  std::sort(events->begin(), events->end(), [&graph](uint32_t a, uint32_t b) {
    const GraphEvent& x = graph.events[a];
    const GraphEvent& y = graph.events[b];
    return std::tie(x.thread, x.index) < std::tie(y.thread, y.index);
  });
}

bool StepGraph::build(const Graph& graph, Model model, Orders orders) {
  graph_ = &graph;
  orders_ = orders;
  tso_ = model == Model::kTso;
  coherent_ = true;
  nodes_.assign(2 * graph.events.size(), {});
  edges_.clear();
  place_.assign(graph.events.size(), 0);
  for (const GraphCell& cell : graph.cells) {
    for (size_t i = 0; i < cell.order.size(); ++i) {
      place_[static_cast<size_t>(cell.order[i])] = static_cast<uint32_t>(i);
    }
  }
  order_threads();
  order_cells();
  return coherent_ && atomic();
}

void StepGraph::put_in_order(const std::vector<uint32_t>& events) {
  for (size_t i = 1; i < events.size(); ++i) {
    if (events[i] != events[i - 1]) {
      add(execution(events[i - 1]), execution(events[i]));
    }
  }
}

std::vector<bool> StepGraph::after(size_t event) const {
  std::vector<bool> found(nodes_.size(), false);
  std::vector<uint32_t> todo = {execution(event)};
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    for_each_after(node, [&](uint32_t next) {
      if (!found[next]) {
        found[next] = true;
        todo.push_back(next);
      }
    });
  }
  return found;
}

bool StepGraph::sort(std::vector<Choice>* schedule) {
  ready_.clear();
  size_t steps = 0;
  for (size_t e = graph_->events.size(); e-- > 0;) {
    if (graph_->events[e].waits) {
      continue;
    }
    steps += commits_later(e) ? 2 : 1;
    if (nodes_[2 * e].degree == 0) {
      ready_.push_back(static_cast<uint32_t>(2 * e));
    }
  }
  size_t done = 0;
  while (!ready_.empty()) {
    const uint32_t node = ready_.back();
    ready_.pop_back();
    ++done;
    if (schedule != nullptr) {
      const GraphEvent& event = graph_->events[node / 2];
      schedule->push_back({event.thread, static_cast<uint8_t>(node % 2),
                           static_cast<uint8_t>(event.op == Op::kAnswer ? event.b : 0)});
    }
    for_each_after(node, [&](uint32_t after) {
      if (--nodes_[after].degree == 0) {
        ready_.push_back(after);
      }
    });
  }
  return done == steps;
}

void StepGraph::add(uint32_t before, uint32_t after) {
  const auto edge = static_cast<uint32_t>(edges_.size());
  edges_.push_back({after, kNone});
  Node& node = nodes_[before];
  if (node.first == kNone) {
    node.first = edge;
  } else {
    edges_[node.last].next = edge;
  }
  node.last = edge;
  ++nodes_[after].degree;
}

template <typename Visit>
void StepGraph::for_each_thread(const Visit& visit) {
  for (size_t begin = 0, end = 0; begin < events_.size(); begin = end) {
    while (end < events_.size() &&
           graph_->events[events_[end]].thread == graph_->events[events_[begin]].thread) {
      ++end;
    }
    visit(begin, end);
  }
}

void StepGraph::order_threads() {
  in_program_order(*graph_, &events_, &begins_);
  newest_.assign(graph_->cells.size(), {UINT32_MAX, kInitial});
  creation_.fill(kNone);
  end_.fill(kNone);
  for_each_thread([this](size_t begin, size_t end) {
    order_thread(begin, end);
    for (size_t at = begin; at < end; ++at) {
      const GraphEvent& event = graph_->events[events_[at]];
      if (event.op == Op::kCreate) {
        creation_.at(static_cast<size_t>(event.a)) = events_[at];
      } else if (event.op == Op::kEnd) {
        end_.at(event.thread) = events_[at];
      }
    }
  });
  for_each_thread([this](size_t begin, size_t end) {
    if (const uint32_t created = creation_.at(graph_->events[events_[begin]].thread);
        created != kNone) {
      add(execution(created), execution(events_[begin]));
    }
    for (size_t at = begin; at < end; ++at) {
      const GraphEvent& event = graph_->events[events_[at]];
      if (event.op != Op::kJoin) {
        continue;
      }
      if (const uint32_t ended = end_.at(static_cast<size_t>(event.a)); ended != kNone) {
        add(execution(ended), execution(events_[at]));
      } else {
        coherent_ = false;
      }
    }
  });
}

void StepGraph::order_thread(size_t begin, size_t end) {
  size_t before = end;
  size_t last_store = end;
  for (size_t at = begin; at < end; ++at) {
    const uint32_t e = events_[at];
    const GraphEvent& event = graph_->events[e];
    if (event.waits) {
      continue;
    }
    if (before != end) {
      add(execution(events_[before]), execution(e));
    }
    before = at;
    if (drains(event.op) && last_store != end) {
      add(commit(events_[last_store]), execution(e));
    }
    if (reads(event.op) && !graph_->cells[event.cell].parts) {
      check_own(event);
    } else if (reads(event.op) && orders_ == Orders::kCells) {
      check_own_parts(begin, at);
    }
    if (event.writes) {
      newest_[event.cell] = {event.thread, static_cast<int32_t>(e)};
    }
    if (commits_later(e)) {
      add(execution(e), commit(e));
      if (last_store != end) {
        add(commit(events_[last_store]), commit(e));
      }
      last_store = at;
    }
  }
}

void StepGraph::check_own(const GraphEvent& load) {
  const Newest& newest = newest_[load.cell];
  const int32_t source = load.source;
  const bool own = source >= 0 && graph_->events[static_cast<size_t>(source)].thread == load.thread;
  if (newest.thread != load.thread) {
    // A later store of its own cannot be read.
    coherent_ = coherent_ && !own;
  } else if (source != newest.write) {
    coherent_ = coherent_ && source >= 0 && !own &&
                place_[static_cast<size_t>(source)] > place_[static_cast<size_t>(newest.write)];
  }
}

// All of a load that one store of its own writes comes from this one or what is newer. Where only
// parts do, it may read memory as it was before these.
void StepGraph::check_own_parts(size_t begin, size_t at) {
  const GraphEvent& load = graph_->events[events_[at]];
  const int32_t source = load.source;
  if (source >= 0) {
    const GraphEvent& from = graph_->events[static_cast<size_t>(source)];
    coherent_ = coherent_ && (from.thread != load.thread || from.index < load.index);
  }
  for (size_t before = at; before-- > begin;) {
    const auto own = static_cast<int32_t>(events_[before]);
    const GraphEvent& write = graph_->events[events_[before]];
    if (write.writes && write.cell == load.cell && covers(write, load)) {
      coherent_ = coherent_ &&
                  (source == own ||
                   (source >= 0 && place_[static_cast<size_t>(source)] > place_[events_[before]]));
      break;
    }
  }
  coherent_ = coherent_ && (load.op != Op::kLoad || is_newest_alike(load));
}

// False: with the next write as its source each byte would come from the same one. Of such graphs
// the one with the newest is made.
bool StepGraph::is_newest_alike(const GraphEvent& load) const {
  const auto& order = graph_->cells[load.cell].order;
  size_t next = load.source < 0 ? 0 : place_[static_cast<size_t>(load.source)] + 1;
  while (next < order.size() &&
         !share_bytes(graph_->events[static_cast<size_t>(order[next])], load)) {
    ++next;
  }
  if (next == order.size()) {
    return true;
  }
  // From here on down: bytes that the load has from the buffer, whatever its source.
  Value buffered = 0;
  for (size_t place = order.size(); place-- > next;) {
    const GraphEvent& write = graph_->events[static_cast<size_t>(order[place])];
    const bool own =
        write.op == Op::kStore && write.thread == load.thread && write.index < load.index;
    if (own) {
      for (uint32_t byte = 0; byte < write.size; ++byte) {
        buffered |= Value{1} << (write.offset + byte);
      }
    }
  }
  const GraphEvent& write = graph_->events[static_cast<size_t>(order[next])];
  for (uint32_t byte = load.offset; byte < uint32_t{load.offset} + load.size; ++byte) {
    if (has_byte(write, byte) && (buffered >> byte & 1) == 0) {
      return true;
    }
  }
  return false;
}

void StepGraph::order_bytes(const GraphCell& cell) {
  for (uint32_t byte = 0; byte < cell.size; ++byte) {
    int32_t before = kInitial;
    for (const int32_t write : cell.order) {
      if (!has_byte(graph_->events[static_cast<size_t>(write)], byte)) {
        continue;
      }
      if (before != kInitial) {
        add(commit(static_cast<size_t>(before)), commit(static_cast<size_t>(write)));
      }
      before = write;
    }
  }
}

void StepGraph::order_read_bytes(uint32_t e) {
  const GraphEvent& load = graph_->events[e];
  const auto& order = graph_->cells[load.cell].order;
  for (uint32_t byte = load.offset; byte < uint32_t{load.offset} + load.size; ++byte) {
    const int32_t source = graph_->source_of_byte(load, byte);
    size_t after = 0;
    if (source >= 0) {
      const auto from = static_cast<size_t>(source);
      after = place_[from] + 1;
      if (graph_->events[from].thread != load.thread || !commits_later(from)) {
        add(commit(from), execution(e));
      }
    }
    while (after < order.size() &&
           !has_byte(graph_->events[static_cast<size_t>(order[after])], byte)) {
      ++after;
    }
    if (after < order.size() && order[after] != static_cast<int32_t>(e)) {
      add(execution(e), commit(static_cast<size_t>(order[after])));
    }
  }
}

void StepGraph::order_cells() {
  for (const GraphCell& cell : graph_->cells) {
    if (by_bytes(cell)) {
      order_bytes(cell);
      continue;
    }
    for (size_t i = 1; i < cell.order.size(); ++i) {
      add(commit(static_cast<size_t>(cell.order[i - 1])),
          commit(static_cast<size_t>(cell.order[i])));
    }
  }
  for (size_t e = 0; e < graph_->events.size(); ++e) {
    const GraphEvent& load = graph_->events[e];
    if (load.waits || !reads(load.op)) {
      continue;
    }
    const GraphCell& cell = graph_->cells[load.cell];
    if (by_bytes(cell) || (cell.parts && load.op == Op::kLoad)) {
      order_read_bytes(static_cast<uint32_t>(e));
      continue;
    }
    const auto& order = graph_->cells[load.cell].order;
    size_t after = 0;
    if (load.source >= 0) {
      const auto source = static_cast<size_t>(load.source);
      after = place_[source] + 1;
      if (graph_->events[source].thread != load.thread || !commits_later(source)) {
        add(commit(source), execution(e));
      }
    }
    if (after < order.size() && order[after] == static_cast<int32_t>(e)) {
      continue;  // its own write
    }
    if (after < order.size()) {
      add(execution(e), commit(static_cast<size_t>(order[after])));
    }
  }
}

bool StepGraph::atomic() const {
  for (const GraphCell& cell : graph_->cells) {
    int32_t before = kInitial;
    for (const int32_t e : cell.order) {
      const GraphEvent& event = graph_->events[static_cast<size_t>(e)];
      if (is_behind_source(event) && event.source != before) {
        return false;
      }
      before = e;
    }
  }
  return true;
}

}  // namespace tsomon::explore
