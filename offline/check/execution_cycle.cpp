#include "offline/check/execution_cycle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "offline/check/units_by_thread.h"
#include "tso/order/mixed_graph.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kMostStarts = 200;
constexpr size_t kMostVisited = 2000;  // edges, from one of them

uint32_t node_in(const OrderedUnits& in, uint32_t e) {
  return in.by_event ? e : in.units.of_event(e);
}
uint32_t nodes_in(const OrderedUnits& in) {
  return in.by_event ? static_cast<uint32_t>(in.trace.events.size()) : in.units.size();
}

// For each node the place of its last event.
std::vector<uint32_t> ends_of(const OrderedUnits& in) {
  std::vector<uint32_t> ends(nodes_in(in));
  for (uint32_t node = 0; node < ends.size(); ++node) {
    ends[node] = in.by_event ? node : in.units[node].last_event;
  }
  return ends;
}

// Edges between units, or events, each with the events behind it.
class UnitGraph {
 public:
  explicit UnitGraph(const OrderedUnits& in) : in_(in), nodes_(nodes_in(in)) {}

  void add(uint32_t from, uint32_t to) {
    const uint32_t a = node_of(from);
    const uint32_t b = node_of(to);
    if (a != b) {
      edges_.push_back({a, b, false});
      behind_.push_back({from, to});
    }
  }

  // Program order, creation and joins, hand-overs.
  void add_certain() {
    const auto& events = in_.trace.events;
    const Adjacency& certain = in_.order.edges();
    for (uint32_t e = 0; e < events.size(); ++e) {
      spend(1 + certain.successors(e).size());
      for (const uint32_t f : certain.successors(e)) {
        const bool starts =
            events[e].kind() == EventKind::kFork && events[e].address == events[f].thread;
        const bool ends =
            events[f].kind() == EventKind::kJoin && events[f].address == events[e].thread;
        if (events[e].thread == events[f].thread
                ? !in_.by_event
                : starts || ends || in_.relation.hands_over(e, f)) {
          add(e, f);
        }
      }
    }
    for (ThreadId thread = 0; in_.by_event && thread < in_.relation.threads(); ++thread) {
      uint32_t last = kNone;
      for (const uint32_t e : in_.relation.of_thread(thread)) {
        if (is(events[e], kinds::kNodes)) {
          if (last != kNone) {
            add(last, e);
          }
          last = e;
        }
      }
    }
  }

  // From each event to the first of the others that it certainly comes before; both lists are
  // ordered.
  void add_first_behind(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to) {
    size_t at = 0;
    spend(8 * (from.size() + to.size()));
    for (const uint32_t e : from) {
      while (at < to.size() && !in_.order.reaches(e, to[at])) {
        ++at;
      }
      if (at == to.size()) {
        return;
      }
      add(e, to[at]);
    }
  }

  // The edges that lead back in an order of the nodes.
  std::vector<Edge> against(std::span<const uint32_t> place) const {
    std::vector<Edge> found;
    for (size_t i = 0; i < edges_.size(); ++i) {
      if (place[edges_[i].from] > place[edges_[i].to]) {
        found.push_back(behind_[i]);
      }
    }
    return found;
  }

  // Between nodes.
  std::vector<Edge> edges() const {
    std::vector<Edge> edges;
    edges.reserve(edges_.size());
    for (const MixedEdge& edge : edges_) {
      edges.push_back({edge.from, edge.to});
    }
    return edges;
  }

  std::optional<std::vector<Edge>> cycle() {
    const MixedComponents components = split_into_components(nodes_, edges_);
    if (components.count == 0) {
      return std::nullopt;
    }
    first_.assign(nodes_ + 1, 0);
    std::vector<uint32_t> inside;
    for (uint32_t i = 0; i < edges_.size(); ++i) {
      const uint32_t component = components.component_of_node[edges_[i].from];
      if (component != MixedComponents::kNone &&
          component == components.component_of_node[edges_[i].to]) {
        inside.push_back(i);
        ++first_[edges_[i].from + 1];
      }
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    leaving_.resize(inside.size());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (const uint32_t i : inside) {
      leaving_[next[edges_[i].from]++] = i;
    }
    reached_by_.assign(nodes_, kNone);
    std::vector<Edge> best;
    const size_t step = std::max<size_t>(inside.size() / kMostStarts, 1);
    for (size_t i = 0; i < inside.size() && best.size() != 2; i += step) {
      std::vector<Edge> found = cycle_through(edges_[inside[i]].from, kMostVisited);
      if (!found.empty() && (best.empty() || found.size() < best.size())) {
        best = std::move(found);
      }
    }
    return best.empty() ? cycle_through(edges_[inside.front()].from, edges_.size() + 1) : best;
  }

 private:
  uint32_t node_of(uint32_t e) const { return node_in(in_, e); }

  // The shortest one, if so many edges are enough; else empty.
  std::vector<Edge> cycle_through(uint32_t start, size_t most) {
    std::vector<uint32_t> seen;
    std::vector<Edge> cycle;
    std::vector<uint32_t> open{start};
    size_t visited = 0;
    for (size_t at = 0; at < open.size() && cycle.empty() && visited < most; ++at) {
      const uint32_t node = open[at];
      for (uint32_t i = first_[node]; i < first_[node + 1] && visited < most; ++i) {
        ++visited;
        const uint32_t edge = leaving_[i];
        const uint32_t to = edges_[edge].to;
        if (to == start) {
          cycle.push_back(behind_[edge]);
          for (uint32_t back = node; back != start; back = edges_[reached_by_[back]].from) {
            cycle.push_back(behind_[reached_by_[back]]);
          }
          std::reverse(cycle.begin(), cycle.end());
          break;
        }
        if (reached_by_[to] == kNone) {
          reached_by_[to] = edge;
          open.push_back(to);
        }
      }
    }
    spend(4 * visited);
    for (const uint32_t node : open) {
      reached_by_[node] = kNone;
    }
    return cycle;
  }

  const OrderedUnits& in_;
  uint32_t nodes_;
  std::vector<MixedEdge> edges_;
  std::vector<Edge> behind_;
  std::vector<uint32_t> first_;    // by node, in leaving_
  std::vector<uint32_t> leaving_;  // edges that may be on a cycle
  std::vector<uint32_t> reached_by_;
};

// The conflicts of an execution, in the order in which its events take effect: from the last store
// to each location, and from what has read it since.
class ExecutionConflicts {
 public:
  ExecutionConflicts(const OrderedUnits& in, UnitGraph* graph)
      : in_(in),
        graph_(graph),
        cells_(in.relation.locations().size()),
        first_(in.trace.events.size(), kNone),
        last_(first_),
        next_(first_),
        committed_(first_.size(), false) {}

  void add(const Step& step) {
    const uint32_t e = step.event;
    if (step.commit) {
      committed_[e] = true;
      take_effect(e);
      // What was forwarded from it has its place right behind it.
      for (uint32_t load = first_[e]; load != kNone; load = next_[load]) {
        take_effect(load);
      }
      return;
    }
    const uint32_t source = in_.relation.source(e);
    if (source != Relation::kNever && !committed_[source]) {
      const uint32_t before = std::exchange(last_[source], e);
      (before == kNone ? first_[source] : next_[before]) = e;
    } else if (!in_.relation.is_store(e)) {
      take_effect(e);
    }
  }

 private:
  struct Cell {
    uint32_t store = kNone;
    std::vector<uint32_t> loads;  // since then, of each thread the last
  };

  void take_effect(uint32_t e) {
    const LocationId here = in_.relation.locations().of_event(e);
    if (here == LocationTable::kNone) {
      return;
    }
    const auto& events = in_.trace.events;
    const bool only_reads = in_.relation.only_reads(e);
    const auto link = [&](uint32_t from) {
      if (from != kNone && events[from].thread != events[e].thread) {
        graph_->add(from, e);
      }
    };
    for (const LocationId other : in_.relation.locations().overlapping(here)) {
      const Cell& theirs = cells_[other];
      spend(4 + (only_reads ? 0 : theirs.loads.size()));
      link(theirs.store);
      if (!only_reads) {
        std::for_each(theirs.loads.begin(), theirs.loads.end(), link);
      }
    }
    Cell& mine = cells_[here];
    if (!only_reads) {
      mine.store = e;
      mine.loads.clear();
      return;
    }
    spend(mine.loads.size());
    const auto own = std::find_if(mine.loads.begin(), mine.loads.end(), [&](uint32_t load) {
      return events[load].thread == events[e].thread;
    });
    if (own == mine.loads.end()) {
      mine.loads.push_back(e);
    } else {
      *own = e;
    }
  }

  const OrderedUnits& in_;
  UnitGraph* graph_;
  std::vector<Cell> cells_;      // by location
  std::vector<uint32_t> first_;  // by store: the loads that were forwarded from it, in the buffer
  std::vector<uint32_t> last_;
  std::vector<uint32_t> next_;  // by load
  std::vector<bool> committed_;
};

}  // namespace

std::optional<std::vector<Edge>> cycle_of_execution(const OrderedUnits& in,
                                                    const std::vector<Step>& execution) {
  return cycle_of_execution(in, execution, {}, nullptr);
}

std::optional<std::vector<Edge>> cycle_of_execution(const OrderedUnits& in,
                                                    const std::vector<Step>& execution,
                                                    std::span<const uint32_t> place,
                                                    std::vector<Edge>* against) {
  UnitGraph graph(in);
  graph.add_certain();
  ExecutionConflicts conflicts(in, &graph);
  for (const Step& step : execution) {
    conflicts.add(step);
  }
  auto cycle = graph.cycle();
  if (cycle && against != nullptr && !place.empty()) {
    *against = graph.against(place);
  }
  return cycle;
}

CertainUnits::CertainUnits(const OrderedUnits& in, const AccessIndex& accesses,
                           const ThreadLists& lists)
    : in_(in), accesses_(accesses) {
  UnitGraph graph(in);
  graph.add_certain();
  for (const ThreadLists::List& mine : lists.lists()) {
    if (!mine.shared) {
      continue;
    }
    for_each_conflicting_list(in.relation, accesses, mine.events.front(),
                              [&](uint32_t number, ThreadId) {
                                const uint32_t first = ThreadLists::first_of(number);
                                for (const uint32_t list : {first, first + 1}) {
                                  graph.add_first_behind(mine.events, lists.lists()[list].events);
                                }
                              });
  }
  cycle_ = graph.cycle();
  edges_ = graph.edges();
}

std::vector<uint32_t> CertainUnits::places(UnitOrder order, std::span<const Edge> more) const {
  std::vector<Edge> edges;
  edges.reserve(edges_.size() + more.size());
  const bool by_thread = order == UnitOrder::kByThread;
  const auto add = [&](uint32_t from, uint32_t to) {
    if (from != to) {
      edges.push_back(by_thread ? Edge{to, from} : Edge{from, to});
    }
  };
  for (const Edge& edge : edges_) {
    add(edge.from, edge.to);
  }
  for (const Edge& edge : more) {
    add(edge.from, edge.to);
  }
  const uint32_t nodes = nodes_in(in_);
  spend(8 * (edges.size() + nodes));
  const Adjacency neighbours(nodes, edges);
  const std::vector<uint32_t> in_order = by_thread ? units_by_thread(in_, accesses_, neighbours)
                                                   : smallest_first(neighbours, ends_of(in_));
  if (in_order.size() != nodes) {
    return {};
  }
  std::vector<uint32_t> places(nodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    places[in_order[i]] = i;
  }
  return places;
}

}  // namespace tsomon
