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
    groups_[group].component = 0;
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

void ConflictGraph::release(Node node) {
  UnitNode& gone = nodes_[node];
  gone.used = false;
  ++generations_[node];
  gone.group = kNoGroup;
  gone.last_from = kNone;
  gone.in.clear();
  gone.undirected.clear();
  gone.places.reset();
  drop_trail(gone);
  moved_to_[node] = kNone;
  free_nodes_.push_back(node);
  --live_;
}

void ConflictGraph::forget_gone() {
  std::erase_if(in_use_, [this](Node node) { return !nodes_[node].used; });
}

// Edges follow their units to where they were merged; those of dropped units go.
void ConflictGraph::rewrite_edges() {
  std::vector<Node> seen(nodes_.size(), kNone);
  for (Node node = 0; node < nodes_.size(); ++node) {
    UnitNode& unit = nodes_[node];
    if (!unit.used) {
      continue;
    }
    size_t kept = 0;
    for (size_t i = 0; i < unit.in.size(); ++i) {
      const Node from = moved_to_[unit.in[i].from];
      if (from == kNone || from == node || seen[from] == node) {
        continue;
      }
      seen[from] = node;
      unit.in[kept] = unit.in[i];
      unit.in[kept++].from = from;
    }
    unit.in.resize(kept);
  }
  std::vector<Node> owner(nodes_.size(), kNone);
  std::vector<size_t> place(nodes_.size(), 0);
  for (Node node = 0; node < nodes_.size(); ++node) {
    UnitNode& unit = nodes_[node];
    if (!unit.used) {
      continue;
    }
    size_t kept = 0;
    for (size_t i = 0; i < unit.undirected.size(); ++i) {
      Neighbour neighbour = unit.undirected[i];
      neighbour.other = moved_to_[neighbour.other];
      if (neighbour.other == kNone || neighbour.other == node) {
        continue;
      }
      if (owner[neighbour.other] == node) {
        unit.undirected[place[neighbour.other]].several = true;
        continue;
      }
      owner[neighbour.other] = node;
      place[neighbour.other] = kept;
      unit.undirected[kept++] = neighbour;
    }
    unit.undirected.resize(kept);
    unit.places.reset();
  }
  for (Node node = 0; node < nodes_.size(); ++node) {
    if (!nodes_[node].used) {
      continue;
    }
    for (size_t i = 0; i < nodes_[node].in.size(); ++i) {
      const Node from = nodes_[node].in[i].from;
      if ((nodes_[from].unit.merged > 0 || nodes_[node].unit.merged > 0) && !joined(from, node)) {
        const Vertex a = vertex(from);
        const Vertex b = vertex(node);
        TSOMON_CHECK(order_.insert_edge(a, b) != EdgeInsertion::kCycle,
                     "merging units closed a cycle");
      }
    }
  }
}

}  // namespace tsomon
