#include "tso/check/further_cycles.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tso/order/event_graph.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/reachability.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kMostVisited = 100'000;  // edges, of one search

// The classes that the edges connect, numbered from 0.
struct Nodes {
  Nodes(const std::vector<CycleEdge>& edges, const std::vector<uint32_t>& class_of) {
    std::unordered_map<uint32_t, uint32_t> number;
    const auto node = [&](uint32_t e) {
      return number.try_emplace(class_of[e], static_cast<uint32_t>(number.size())).first->second;
    };
    for (const CycleEdge& edge : edges) {
      spend(4);
      from.push_back(node(edge.from));
      to.push_back(node(edge.to));
    }
    count = static_cast<uint32_t>(number.size());
  }

  std::vector<uint32_t> from;  // by edge
  std::vector<uint32_t> to;
  uint32_t count = 0;
};

// The shortest way back from where the edge leads, with the edge in front; empty: none was found.
class WaysBack {
 public:
  WaysBack(const Nodes& nodes, const std::vector<Edge>& leaving)
      : nodes_(nodes), out_(nodes.count, leaving), entered_(nodes.count, kNone) {}

  std::vector<uint32_t> of(uint32_t edge) {
    const uint32_t goal = nodes_.from[edge];
    std::vector<uint32_t> queue{nodes_.to[edge]};
    entered_[nodes_.to[edge]] = edge;
    uint64_t visited = 0;
    for (size_t at = 0; at < queue.size() && entered_[goal] == kNone && visited < kMostVisited;
         ++at) {
      spend(1 + out_.successors(queue[at]).size());
      for (const uint32_t next : out_.successors(queue[at])) {
        ++visited;
        if (entered_[nodes_.to[next]] == kNone) {
          entered_[nodes_.to[next]] = next;
          queue.push_back(nodes_.to[next]);
        }
      }
    }
    std::vector<uint32_t> cycle;
    for (uint32_t node = goal; entered_[goal] != kNone;) {
      cycle.push_back(entered_[node]);
      if (entered_[node] == edge) {
        break;
      }
      node = nodes_.from[entered_[node]];
    }
    std::reverse(cycle.begin(), cycle.end());
    for (const uint32_t node : queue) {
      entered_[node] = kNone;
    }
    return cycle;
  }

 private:
  const Nodes& nodes_;
  Adjacency out_;
  std::vector<uint32_t> entered_;  // by class: the edge by which a search came
};

}  // namespace

std::vector<std::vector<uint32_t>> further_cycles(
    const std::vector<CycleEdge>& edges, const std::vector<uint32_t>& class_of,
    const std::function<uint64_t(const CycleEdge&)>& kind) {
  const Nodes nodes(edges, class_of);
  std::vector<MixedEdge> directed;
  for (uint32_t i = 0; i < edges.size(); ++i) {
    directed.push_back({nodes.from[i], nodes.to[i], false});
  }
  const MixedComponents components = split_into_components(nodes.count, directed);
  std::vector<Edge> leaving;
  std::unordered_map<uint64_t, uint32_t> first_of;  // edge from class to class
  for (uint32_t i = 0; i < edges.size(); ++i) {
    spend(4);
    if (nodes.from[i] != nodes.to[i] && components.edge_on_cycle[i]) {
      leaving.push_back({nodes.from[i], i});
      first_of.try_emplace(uint64_t{nodes.from[i]} << 32 | nodes.to[i], i);
    }
  }
  std::vector<std::vector<uint32_t>> cycles;
  std::unordered_set<uint64_t> told;  // kinds of conflicts
  for (const Edge& each : leaving) {
    const uint32_t i = each.to;
    const uint64_t there = uint64_t{nodes.from[i]} << 32 | nodes.to[i];
    const auto back = first_of.find(uint64_t{nodes.to[i]} << 32 | nodes.from[i]);
    if (back == first_of.end()) {
      continue;
    }
    told.insert(kind(edges[i]));
    if (first_of.at(there) == i && i < back->second) {
      cycles.push_back({i, back->second});
    }
  }
  WaysBack ways(nodes, leaving);
  for (const Edge& each : leaving) {
    const CycleEdge& edge = edges[each.to];
    if (edge.kind == EdgeKind::kProgramOrder || !told.insert(kind(edge)).second) {
      continue;
    }
    auto cycle = ways.of(each.to);
    for (const uint32_t i : cycle) {
      told.insert(kind(edges[i]));
    }
    if (!cycle.empty()) {
      cycles.push_back(std::move(cycle));
    }
  }
  return cycles;
}

}  // namespace tsomon
