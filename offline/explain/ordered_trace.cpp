#include "offline/explain/ordered_trace.h"

#include <algorithm>
#include <numeric>

#include "tso/check/cycle.h"
#include "tso/order/mixed_graph.h"
#include "tso/support/work.h"

namespace tsomon::explain {
namespace {

// By event its place among the beginnings of all.
std::vector<uint32_t> places_by_time(const Trace& trace) {
  std::vector<uint32_t> order(trace.events.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return trace.events[a].lo < trace.events[b].lo; });
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
  }
  return place;
}

}  // namespace

std::optional<OrderedTrace> OrderedTrace::make(const Trace& trace, const OrderOptions& options,
                                               const std::vector<std::vector<Edge>>& chosen) {
  OrderedTrace made;
  made.trace_ = &trace;
  made.units_ = UnitTable(trace);
  made.locations_ = std::make_unique<LocationTable>(trace);
  made.relation_ = std::make_unique<Relation>(trace, *made.locations_, options.relation);
  const AccessIndex accesses(*made.relation_);
  made.graph_ = refine(*made.relation_, accesses, {options.values, options.max_undirected, {}});
  if (!made.graph_) {
    return std::nullopt;
  }
  for (const std::vector<Edge>& cycle : chosen) {
    for (const Edge& edge : cycle) {
      made.graph_->order.insert(edge);
    }
  }
  made.graph_->order.put_together();
  made.order_ = smallest_first(made.graph_->order.edges(), places_by_time(trace));
  made.place_.assign(trace.events.size(), 0);
  for (uint32_t i = 0; i < made.order_.size(); ++i) {
    made.place_[made.order_[i]] = i;
  }
  std::vector<Edge> of_locks;
  const Adjacency& edges = made.graph_->order.edges();
  for (uint32_t e = 0; e < edges.nodes(); ++e) {
    for (const uint32_t f : edges.successors(e)) {
      spend(2);
      (orders_lock(trace.events[e], trace.events[f]) ? of_locks : made.edges_).push_back({e, f});
    }
  }
  made.add_conflicts();
  made.add_locks(of_locks);
  return made;
}

void OrderedTrace::add_locks(const std::vector<Edge>& of_locks) {
  in_circle_.assign(units_.size(), false);
  for (const std::vector<UnitId>& circle : circles()) {
    for (const UnitId unit : circle) {
      in_circle_[unit] = true;
    }
  }
  const auto locks_count = [&](uint32_t e) {
    const UnitId unit = units_.of_event(e);
    return unit == UnitTable::kNone || !in_circle_[unit];
  };
  std::copy_if(of_locks.begin(), of_locks.end(), std::back_inserter(edges_),
               [&](const Edge& edge) { return locks_count(edge.from) && locks_count(edge.to); });
}

bool OrderedTrace::counts(uint32_t e) const {
  if (!is(trace_->events[e], kinds::kLocks)) {
    return is(trace_->events[e], kinds::kAccesses);
  }
  const UnitId unit = units_.of_event(e);
  return unit == UnitTable::kNone || !in_circle_[unit];
}

// Of each range of bytes the last store, and the loads since.
void OrderedTrace::add_conflicts() {
  struct Last {
    uint32_t store = Relation::kNever;
    std::vector<uint32_t> loads;
  };
  std::vector<Last> last(locations_->size());
  const auto add = [&](uint32_t from, uint32_t to) {
    if (trace_->events[from].thread != trace_->events[to].thread) {
      edges_.push_back({from, to});
    }
  };
  for (const uint32_t e : order_) {
    const LocationId location = locations_->of_event(e);
    if (location == LocationTable::kNone || is(trace_->events[e], kinds::kLocks)) {
      continue;
    }
    const bool reads = is(trace_->events[e], kinds::kOnlyReads);
    for (const LocationId other : locations_->overlapping(location)) {
      Last& before = last[other];
      spend(4 + before.loads.size());
      if (before.store != Relation::kNever) {
        add(before.store, e);
      }
      if (!reads) {
        for (const uint32_t load : before.loads) {
          add(load, e);
        }
      }
    }
    if (reads) {
      last[location].loads.push_back(e);
    } else {
      last[location].store = e;
      last[location].loads.clear();
    }
  }
}

std::vector<std::vector<UnitId>> OrderedTrace::circles() const {
  std::vector<MixedEdge> edges;
  edges.reserve(edges_.size());
  for (const Edge& edge : edges_) {
    spend(2);
    const UnitId from = units_.of_event(edge.from);
    const UnitId to = units_.of_event(edge.to);
    if (from != to && from != UnitTable::kNone && to != UnitTable::kNone) {
      edges.push_back({from, to, false});
    }
  }
  const MixedComponents parts = split_into_components(units_.size(), edges);
  std::vector<std::vector<UnitId>> circles(parts.count);
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    if (parts.component_of_node[unit] != MixedComponents::kNone) {
      circles[parts.component_of_node[unit]].push_back(unit);
    }
  }
  return circles;
}

bool OrderedTrace::has_cycle(uint32_t classes, const std::vector<uint32_t>& class_of) const {
  std::vector<MixedEdge> edges;
  edges.reserve(edges_.size());
  const auto node = [&](uint32_t e) {
    return class_of[e] == UnitTable::kNone ? classes + e : class_of[e];
  };
  for (const Edge& edge : edges_) {
    spend(2);
    if (const uint32_t from = node(edge.from), to = node(edge.to); from != to) {
      edges.push_back({from, to, false});
    }
  }
  return split_into_components(classes + static_cast<uint32_t>(trace_->events.size()), edges)
             .count > 0;
}

}  // namespace tsomon::explain
