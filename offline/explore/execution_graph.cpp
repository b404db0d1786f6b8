#include "offline/explore/execution_graph.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <utility>

namespace tsomon::explore {
namespace {

// Numbers of events, by thread and place in it. A thread's events are its first ones, so each place
// is known; what has others is sorted.
std::vector<uint32_t> in_program_order(const Graph& graph) {
  std::vector<uint32_t> begin(2, 0);
  for (const GraphEvent& event : graph.events) {
    if (begin.size() < event.thread + 2U) {
      begin.resize(event.thread + 2U, 0);
    }
    ++begin[event.thread + 1U];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  constexpr uint32_t kFree = UINT32_MAX;
  std::vector<uint32_t> events(graph.events.size(), kFree);
  bool placed = true;
  for (uint32_t e = 0; placed && e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    const uint64_t at = uint64_t{begin[event.thread]} + event.index;
    placed = at < begin[event.thread + 1U] && events[at] == kFree;
    if (placed) {
      events[at] = e;
    }
  }
  if (placed) {
    return events;
  }
  std::iota(events.begin(), events.end(), 0U);
  std::sort(events.begin(), events.end(), [&graph](uint32_t a, uint32_t b) {
    const GraphEvent& x = graph.events[a];
    const GraphEvent& y = graph.events[b];
    return std::tie(x.thread, x.index) < std::tie(y.thread, y.index);
  });
  return events;
}

// Nodes are steps: 2e executes event e, 2e + 1 commits it where that is another step.
class StepGraph {
 public:
  StepGraph(const Graph& graph, Model model)
      : graph_(graph),
        tso_(model == Model::kTso),
        nodes_(2 * graph.events.size()),
        place_(graph.events.size(), 0) {
    edges_.reserve(4 * nodes_.size());
    for (const GraphCell& cell : graph_.cells) {
      for (size_t i = 0; i < cell.order.size(); ++i) {
        place_[cell.order[i]] = i;
      }
    }
  }

  // False: some load reads an older write than one of its own thread.
  bool build() {
    order_threads();
    order_cells();
    return coherent_ && atomic();
  }

  void put_in_order(const std::vector<uint32_t>& events) {
    for (size_t i = 1; i < events.size(); ++i) {
      if (events[i] != events[i - 1]) {
        add(execution(events[i - 1]), execution(events[i]));
      }
    }
  }

  // The steps that come after the execution of the event.
  std::vector<bool> after(size_t event) const {
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

  bool sort(std::vector<Choice>* schedule) {
    std::vector<uint32_t> ready;
    ready.reserve(nodes_.size());
    size_t steps = 0;
    for (size_t e = graph_.events.size(); e-- > 0;) {
      if (graph_.events[e].waits) {
        continue;
      }
      steps += commits_later(e) ? 2 : 1;
      if (nodes_[2 * e].degree == 0) {
        ready.push_back(static_cast<uint32_t>(2 * e));
      }
    }
    size_t done = 0;
    while (!ready.empty()) {
      const uint32_t node = ready.back();
      ready.pop_back();
      ++done;
      if (schedule != nullptr) {
        schedule->push_back({graph_.events[node / 2].thread, static_cast<uint16_t>(node % 2)});
      }
      for_each_after(node, [&](uint32_t after) {
        if (--nodes_[after].degree == 0) {
          ready.push_back(after);
        }
      });
    }
    return done == steps;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // A step, and the list of the edges that leave it, in the order in which they were added.
  struct Node {
    uint32_t degree = 0;
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  struct Edge {
    uint32_t to;
    uint32_t next;
  };

  bool commits_later(size_t e) const { return tso_ && graph_.events[e].op == Op::kStore; }
  uint32_t execution(size_t e) const { return static_cast<uint32_t>(2 * e); }
  uint32_t commit(size_t e) const {
    return static_cast<uint32_t>(commits_later(e) ? 2 * e + 1 : 2 * e);
  }
  void add(uint32_t before, uint32_t after) {
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
  void for_each_after(uint32_t node, const Visit& visit) const {
    for (uint32_t edge = nodes_[node].first; edge != kNone; edge = edges_[edge].next) {
      visit(edges_[edge].to);
    }
  }

  void order_threads() {
    const std::vector<uint32_t> events = in_program_order(graph_);
    std::vector<std::pair<Value, uint32_t>> creations;  // the thread, the event
    std::vector<std::pair<Value, uint32_t>> ends;
    for_each_thread(events, [&](size_t begin, size_t end) {
      order_thread(events, begin, end);
      for (size_t at = begin; at < end; ++at) {
        const GraphEvent& event = graph_.events[events[at]];
        if (event.op == Op::kCreate) {
          creations.emplace_back(event.a, events[at]);
        } else if (event.op == Op::kEnd) {
          ends.emplace_back(event.thread, events[at]);
        }
      }
    });
    for_each_thread(events, [&](size_t begin, size_t end) {
      if (const auto creation = last_of(creations, graph_.events[events[begin]].thread)) {
        add(execution(*creation), execution(events[begin]));
      }
      for (size_t at = begin; at < end; ++at) {
        const GraphEvent& event = graph_.events[events[at]];
        if (event.op != Op::kJoin) {
          continue;
        }
        if (const auto ended = last_of(ends, event.a)) {
          add(execution(*ended), execution(events[at]));
        } else {
          coherent_ = false;
        }
      }
    });
  }

  template <typename Visit>
  void for_each_thread(const std::vector<uint32_t>& events, const Visit& visit) const {
    for (size_t begin = 0, end = 0; begin < events.size(); begin = end) {
      while (end < events.size() &&
             graph_.events[events[end]].thread == graph_.events[events[begin]].thread) {
        ++end;
      }
      visit(begin, end);
    }
  }
  static std::optional<uint32_t> last_of(const std::vector<std::pair<Value, uint32_t>>& of,
                                         Value thread) {
    std::optional<uint32_t> found;
    for (const auto& [number, event] : of) {
      found = number == thread ? event : found;
    }
    return found;
  }

  void order_thread(const std::vector<uint32_t>& events, size_t begin, size_t end) {
    size_t before = end;
    size_t last_store = end;
    newest_.assign(graph_.cells.size(), kInitial);
    for (size_t at = begin; at < end; ++at) {
      const uint32_t e = events[at];
      const GraphEvent& event = graph_.events[e];
      if (event.waits) {
        continue;
      }
      if (before != end) {
        add(execution(events[before]), execution(e));
      }
      before = at;
      if (drains(event.op) && last_store != end) {
        add(commit(events[last_store]), execution(e));
      }
      if (reads(event.op)) {
        check_own(event);
      }
      if (event.writes) {
        newest_[event.cell] = static_cast<int32_t>(e);
      }
      if (commits_later(e)) {
        add(execution(e), commit(e));
        if (last_store != end) {
          add(commit(events[last_store]), commit(e));
        }
        last_store = at;
      }
    }
  }

  void check_own(const GraphEvent& load) {
    const int32_t own = newest_[load.cell];
    const int32_t source = load.source;
    if (own == kInitial) {
      // A later store of its own cannot be read.
      coherent_ = coherent_ && (source < 0 || graph_.events[source].thread != load.thread);
    } else if (source != own) {
      coherent_ = coherent_ && source >= 0 && graph_.events[source].thread != load.thread &&
                  place_[source] > place_[own];
    }
  }

  void order_cells() {
    for (const GraphCell& cell : graph_.cells) {
      for (size_t i = 1; i < cell.order.size(); ++i) {
        add(commit(cell.order[i - 1]), commit(cell.order[i]));
      }
    }
    for (size_t e = 0; e < graph_.events.size(); ++e) {
      const GraphEvent& load = graph_.events[e];
      if (load.waits || !reads(load.op)) {
        continue;
      }
      const auto& order = graph_.cells[load.cell].order;
      size_t after = 0;
      if (load.source >= 0) {
        after = place_[load.source] + 1;
        const auto source = static_cast<size_t>(load.source);
        if (graph_.events[source].thread != load.thread || !commits_later(source)) {
          add(commit(source), execution(e));
        }
      }
      if (after < order.size() && order[after] == static_cast<int32_t>(e)) {
        continue;  // its own write
      }
      if (after < order.size()) {
        add(execution(e), commit(order[after]));
      }
    }
  }

  // Every locked operation that writes comes right behind what it reads.
  bool atomic() {
    for (const GraphCell& cell : graph_.cells) {
      int32_t before = kInitial;
      for (const int32_t e : cell.order) {
        const GraphEvent& event = graph_.events[e];
        if (event.op != Op::kStore && event.source != before) {
          return false;
        }
        before = e;
      }
    }
    return true;
  }

  const Graph& graph_;
  const bool tso_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<size_t> place_;    // of each write in the order of its cell
  std::vector<int32_t> newest_;  // own write by cell, of the thread that is put in order
  bool coherent_ = true;
};

void put(std::string* name, uint64_t number, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) {
    name->push_back(static_cast<char>(number >> (8 * byte)));
  }
}

}  // namespace

Effect effect_of(const Graph& graph, const GraphEvent& event, int32_t write) {
  const Value old = graph.value_of(write, event.cell);
  return event.exact ? apply_exactly(event.op, old, event.a, event.b, event.size, event.thread)
                     : apply(event.op, old, event.a, event.b, event.size, event.thread);
}

bool linearize(const Graph& graph, Model model, std::vector<Choice>* schedule,
               const std::vector<uint32_t>& executed) {
  StepGraph steps(graph, model);
  if (!steps.build()) {
    return false;
  }
  steps.put_in_order(executed);
  return steps.sort(schedule);
}

std::optional<uint32_t> event_before(const Graph& graph, const Mark& mark) {
  std::optional<uint32_t> last;
  for (uint32_t e = 0; e < graph.events.size(); ++e) {
    const GraphEvent& event = graph.events[e];
    if (event.thread == mark.thread && !event.waits && event.operation < mark.operation &&
        (!last || graph.events[*last].operation < event.operation)) {
      last = e;
    }
  }
  return last;
}

std::vector<std::vector<bool>> executed_before(const Graph& graph, Model model,
                                               const std::vector<uint32_t>& events) {
  StepGraph steps(graph, model);
  steps.build();
  std::vector<std::vector<bool>> before;
  for (const uint32_t event : events) {
    const std::vector<bool> after = steps.after(event);
    std::vector<bool>& row = before.emplace_back(events.size());
    for (size_t other = 0; other < events.size(); ++other) {
      row[other] = after[2 * size_t{events[other]}];
    }
  }
  return before;
}

std::string class_name(const Graph& graph) {
  std::string name;
  name.reserve(16 * graph.events.size());
  const auto put_write = [&](int32_t write) {
    put(&name, write < 0 ? 0xFFFF : graph.events[write].thread, 2);
    put(&name, write < 0 ? 0 : graph.events[write].index, 4);
  };
  for (const uint32_t e : in_program_order(graph)) {
    const GraphEvent& event = graph.events[e];
    put(&name, event.thread, 2);
    put(&name, static_cast<uint64_t>(event.op) << 1 | (event.waits ? 1 : 0), 2);
    if (reads(event.op)) {
      put_write(event.source);
    }
  }
  // Cells by address: their numbers depend on the order in which they were seen.
  std::vector<const GraphCell*> cells;
  for (const GraphCell& cell : graph.cells) {
    if (!cell.order.empty()) {
      cells.push_back(&cell);
    }
  }
  std::sort(cells.begin(), cells.end(), [](const GraphCell* a, const GraphCell* b) {
    return std::tie(a->address, a->size, a->object) < std::tie(b->address, b->size, b->object);
  });
  for (const GraphCell* const cell : cells) {
    put(&name, cell->address, 8);
    for (const int32_t write : cell->order) {
      put_write(write);
    }
  }
  return name;
}

uint64_t class_hash(const Graph& graph) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : class_name(graph)) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    hash ^= hash >> 29;
  }
  return hash;
}

uint64_t values_hash(const Graph& graph) {
  uint64_t hash = 0;
  for (const uint32_t e : in_program_order(graph)) {
    const Value read = graph.events[e].read;
    hash = (hash ^ static_cast<uint64_t>(read) ^ static_cast<uint64_t>(read >> 64)) *
           0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace tsomon::explore
