#include "online/graph/conflict_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tso/support/result.h"

namespace tsomon {

ConflictGraph::Node ConflictGraph::add_unit(const DetectedUnit& unit, uint32_t set) {
  Node node = kNone;
  if (free_nodes_.empty()) {
    node = static_cast<Node>(nodes_.size());
    nodes_.emplace_back();
    generations_.push_back(0);
  } else {
    node = free_nodes_.back();
    free_nodes_.pop_back();
  }
  UnitNode& added = nodes_[node];
  added.unit = unit;
  added.set = set;
  added.used = true;
  in_use_.push_back(node);
  added.only_events = !by_event_ && unit.label == Interner::kNone;
  ++live_;
  ++statistics_.units;
  return node;
}

ConflictGraph::Vertex ConflictGraph::vertex(Node node) {
  if (nodes_[node].group == kNoGroup) {
    uint32_t group = 0;
    if (free_groups_.empty()) {
      group = static_cast<uint32_t>(groups_.size());
      groups_.emplace_back();
    } else {
      group = free_groups_.back();
      free_groups_.pop_back();
    }
    const Vertex added = order_.add_node();
    groups_[group].vertex = added;
    groups_[group].members.assign(1, node);
    groups_[group].part = 0;
    groups_[group].units = 1;
    nodes_[node].group = group;
    if (group_of_vertex_.size() < order_.id_bound()) {
      group_of_vertex_.resize(order_.id_bound(), kNoGroup);
    }
    group_of_vertex_[added] = group;
  }
  return groups_[nodes_[node].group].vertex;
}

ConflictGraph::Neighbour* ConflictGraph::find_undirected(Node where, Node other) {
  UnitNode& node = nodes_[where];
  auto& list = node.undirected;
  if (list.size() <= kFewNeighbours) {
    // The latest are the likeliest.
    for (size_t i = list.size(); i-- > 0;) {
      if (list[i].other == other) {
        return &list[i];
      }
    }
    return nullptr;
  }
  if (node.places == nullptr) {
    node.places = std::make_unique<tsl::robin_map<Node, uint32_t>>();
  }
  for (auto i = static_cast<uint32_t>(node.places->size()); i < list.size(); ++i) {
    node.places->insert({list[i].other, i});
  }
  const auto at = node.places->find(other);
  return at != node.places->end() ? &list[at->second] : nullptr;
}

void ConflictGraph::add_undirected(Node a, Node b, bool several) {
  if (a == b || joined(a, b)) {
    return;
  }
  if (nodes_[a].undirected.size() > nodes_[b].undirected.size()) {
    std::swap(a, b);
  }
  if (Neighbour* known = find_undirected(a, b)) {
    if (!known->several) {
      known->several = true;
      find_undirected(b, a)->several = true;
    }
    return;
  }
  ++statistics_.undirected_edges;
  nodes_[a].undirected.push_back({b, several});
  nodes_[b].undirected.push_back({a, several});
}

void ConflictGraph::check_invariants() const {
  const std::string order = order_.check_invariants();
  TSOMON_CHECK(order.empty(), order.c_str());
  TSOMON_CHECK(in_use_.size() == live_, "the list of units in use is wrong");
  for (const Node node : in_use_) {
    TSOMON_CHECK(nodes_[node].used, "a unit that is gone counts as in use");
  }
  size_t live = 0;
  for (Node node = 0; node < nodes_.size(); ++node) {
    const UnitNode& unit = nodes_[node];
    if (!unit.used) {
      continue;
    }
    ++live;
    if (unit.group != kNoGroup) {
      const Group& group = groups_[unit.group];
      TSOMON_CHECK(group_of_vertex_[group.vertex] == unit.group, "a group has another's vertex");
      TSOMON_CHECK(std::count(group.members.begin(), group.members.end(), node) == 1,
                   "a group misses one of its units");
    }
    for (const InEdge& edge : unit.in) {
      TSOMON_CHECK(nodes_[edge.from].used, "an edge comes from a unit that is gone");
      TSOMON_CHECK(
          joined(edge.from, node) ||
              order_.has_edge(groups_[nodes_[edge.from].group].vertex, groups_[unit.group].vertex),
          "an edge is not in the order");
    }
    for (const Neighbour& neighbour : unit.undirected) {
      const auto& back = nodes_[neighbour.other].undirected;
      TSOMON_CHECK(nodes_[neighbour.other].used &&
                       std::any_of(back.begin(), back.end(),
                                   [&](const Neighbour& one) { return one.other == node; }),
                   "an undirected edge has one end");
    }
  }
  TSOMON_CHECK(live == live_, "the number of units is wrong");
}

}  // namespace tsomon
