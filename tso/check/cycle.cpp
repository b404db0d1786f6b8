#include "tso/check/cycle.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "tso/order/mixed_graph.h"
#include "tso/order/reachability.h"
#include "tso/support/flat_map.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
std::vector<CycleEdge> shortest_cycle(const std::vector<CycleEdge>& edges,
                                      const std::vector<uint32_t>& class_of) {
  FlatMap<uint32_t, uint32_t> local;
  const auto index = [&](uint32_t event) {
    return *local.try_emplace(class_of[event], static_cast<uint32_t>(local.size())).first;
  };
  std::vector<uint32_t> source(edges.size());
  std::vector<uint32_t> target(edges.size());
  for (uint32_t i = 0; i < edges.size(); ++i) {
    source[i] = index(edges[i].from);
    target[i] = index(edges[i].to);
  }
  // Classes that lie on no cycle would be visited from each of the others before them.
  const auto classes = static_cast<uint32_t>(local.size());
  std::vector<MixedEdge> directed;
  directed.reserve(edges.size());
  for (uint32_t i = 0; i < edges.size(); ++i) {
    directed.push_back({source[i], target[i], false});
  }
  const MixedComponents components = split_into_components(classes, directed);
  std::vector<Edge> leaving;  // class -> edge
  leaving.reserve(edges.size());
  for (uint32_t i = 0; i < edges.size(); ++i) {
    if (source[i] != target[i] && components.edge_on_cycle[i]) {
      leaving.push_back({source[i], i});
    }
  }
  const Adjacency out(classes, leaving);
  std::vector<CycleEdge> best;
  std::vector<uint32_t> entered(classes);
  std::vector<uint32_t> depth(classes);
  uint64_t work = 0;
  for (uint32_t start = 0; start < classes && best.size() != 2 && work < kMaxCycleWork; ++start) {
    spend(1 + classes / 8);
    std::fill(entered.begin(), entered.end(), kNone);
    std::vector<uint32_t> queue{start};
    depth[start] = 0;
    uint32_t closing = kNone;
    for (size_t at = 0; at < queue.size() && closing == kNone; ++at) {
      const uint32_t node = queue[at];
      if (!best.empty() && depth[node] + 1 >= best.size()) {
        break;
      }
      spend(1 + out.successors(node).size());
      for (const uint32_t i : out.successors(node)) {
        ++work;
        if (target[i] == start) {
          closing = i;
          break;
        }
        if (entered[target[i]] == kNone) {
          entered[target[i]] = i;
          depth[target[i]] = depth[node] + 1;
          queue.push_back(target[i]);
        }
      }
    }
    if (closing != kNone) {
      best.clear();
      for (uint32_t i = closing;; i = entered[source[i]]) {
        best.push_back(edges[i]);
        if (source[i] == start) {
          break;
        }
      }
      std::reverse(best.begin(), best.end());
    }
  }
  for (CycleEdge& edge : best) {
    edge.unit = class_of[edge.from];
  }
  return best;
}

bool orders_lock(const Event& from, const Event& to) {
  return is(from, kinds::kLocks) && is(to, kinds::kLocks) && from.thread != to.thread;
}

std::vector<CycleEdge> shortest_cycle_of_data(const Trace& trace,
                                              const std::vector<CycleEdge>& edges,
                                              const std::vector<uint32_t>& class_of) {
  std::vector<CycleEdge> data;
  std::copy_if(edges.begin(), edges.end(), std::back_inserter(data), [&](const CycleEdge& edge) {
    return !orders_lock(trace.events[edge.from], trace.events[edge.to]);
  });
  if (data.size() != edges.size()) {
    if (auto cycle = shortest_cycle(data, class_of); !cycle.empty()) {
      return cycle;
    }
  }
  return shortest_cycle(edges, class_of);
}

std::vector<CycleEdge> shortest_cycle_among(const Relation& relation,
                                            const std::vector<uint32_t>& class_of,
                                            const std::vector<uint32_t>& events,
                                            const OrientationOracle& before,
                                            const ThreadOrder& in_thread) {
  std::vector<CycleEdge> edges;
  if (events.size() > kMaxPairEvents) {
    return edges;
  }
  for (const uint32_t e : events) {
    spend(4 * events.size());
    for (const uint32_t f : events) {
      if (class_of[e] == class_of[f]) {
        continue;
      }
      const bool same_thread =
          relation.trace().events[e].thread == relation.trace().events[f].thread;
      const Order order = relation.between(e, f);
      EdgeKind kind = EdgeKind::kConflict;
      if (same_thread) {
        kind = EdgeKind::kProgramOrder;
        if (in_thread ? !in_thread(e, f) : order != Order::kBefore) {
          continue;
        }
      } else if (order == Order::kUndirected && before(e, f) == Order::kBefore) {
        kind = EdgeKind::kReordering;
      } else if (order != Order::kBefore) {
        continue;
      } else if (!relation.conflict(e, f)) {
        kind = relation.hands_over(e, f) ? EdgeKind::kHandOver : EdgeKind::kThread;
      }
      edges.push_back({0, e, f, kind});
    }
  }
  return shortest_cycle_of_data(relation.trace(), edges, class_of);
}

std::vector<CycleEdge> shortened(const Relation& relation, const std::vector<uint32_t>& class_of,
                                 std::vector<CycleEdge> cycle) {
  uint64_t left = kMaxCycleWork / 10;
  const size_t size = cycle.size();
  // An edge from class i to class j, between events by which the cycle enters or leaves them.
  const auto edge = [&](size_t i, size_t j) -> std::optional<CycleEdge> {
    for (const uint32_t from : {cycle[i].from, cycle[(i + size - 1) % size].to}) {
      for (const uint32_t to : {cycle[j - 1].to, cycle[j % size].from}) {
        if (relation.trace().events[from].thread != relation.trace().events[to].thread &&
            !orders_lock(relation.trace().events[from], relation.trace().events[to]) &&
            relation.conflict(from, to) && relation.between(from, to) == Order::kBefore) {
          return CycleEdge{class_of[from], from, to, EdgeKind::kConflict};
        }
      }
    }
    return std::nullopt;
  };
  std::vector<CycleEdge> result;
  for (size_t i = 0; i < size;) {
    CycleEdge taken = cycle[i];
    size_t next = i + 1;
    // The furthest first; class 0 comes last, too.
    for (size_t j = i == 0 ? size - 1 : size; j > i + 1 && left != 0; --j, --left) {
      spend(4);
      if (const auto found = edge(i, j)) {
        taken = *found;
        next = j;
        break;
      }
    }
    result.push_back(taken);
    i = next;
  }
  return result;
}

}  // namespace tsomon
