// Cycles of directed edges: the strongly connected component becomes one node of the order, and the
// edges of the cycle are looked for.
#include <algorithm>
#include <utility>

#include "online/graph/conflict_graph.h"
#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint64_t kExplainedAtFirst = 1'000'000;  // edges looked at for explanations ...
constexpr uint64_t kExplainedPerEvent = 16;        // ... and how many more with every event

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDULL;
}

// The same for every rotation of the cycle.
uint64_t hash_of(const DetectedCycle& cycle) {
  std::vector<uint64_t> steps;
  for (const DetectedStep& step : cycle.steps) {
    const uint64_t locations = (static_cast<uint64_t>(step.from.location) << 32) | step.to.location;
    steps.push_back(mix(mix(step.unit.label, locations), static_cast<uint64_t>(step.kind)));
  }
  // The rotation that begins with the smallest step; the first of equal ones is good enough, two
  // reports of one cycle being a lesser evil than looking for the least rotation of a long one.
  std::rotate(steps.begin(), std::min_element(steps.begin(), steps.end()), steps.end());
  uint64_t hash = cycle.set;
  for (const uint64_t step : steps) {
    hash = mix(hash, step);
  }
  return hash;
}

}  // namespace

void ConflictGraph::close_cycle(Node from, Node to) {
  ++statistics_.cycles;
  DetectedCycle cycle;
  cycle.set = nodes_[to].set;
  const bool explained = explain(from, to, &cycle);

  const std::vector<Vertex> path(order_.cycle().begin(), order_.cycle().end());
  const Vertex stays = order_.contract(path);
  uint32_t survivor = group_of_vertex_[stays];
  std::vector<uint32_t> others;
  for (const Vertex gone : order_.absorbed()) {
    const uint32_t group = group_of_vertex_[gone];
    group_of_vertex_[gone] = kNoGroup;
    others.push_back(group);
    if (groups_[group].members.size() > groups_[survivor].members.size()) {
      std::swap(others.back(), survivor);
    }
  }
  Group& whole = groups_[survivor];
  std::vector<uint64_t> joined;
  if (whole.component != 0) {
    joined.push_back(whole.component);
  }
  whole.vertex = stays;
  group_of_vertex_[stays] = survivor;
  for (const uint32_t group : others) {
    Group& component = groups_[group];
    for (const Node member : component.members) {
      nodes_[member].group = survivor;
    }
    whole.members.insert(whole.members.end(), component.members.begin(), component.members.end());
    whole.units += component.units;
    if (component.component != 0) {
      joined.push_back(component.component);
    }
    if (component.component != 0 &&
        (whole.component == 0 || component.component < whole.component)) {
      whole.component = component.component;
    }
    component = Group();
    free_groups_.push_back(group);
  }
  if (whole.component == 0) {
    whole.component = ++parts_;
  }
  for (const uint64_t part : joined) {
    if (part != whole.component && callbacks_->on_joined) {
      callbacks_->on_joined(part, whole.component);
    }
  }
  cycle.component = whole.component;
  cycle.component_units = whole.units;
  if (explained) {
    report(std::move(cycle));
  }
}

// An edge from a unit of one group to a unit of another, as it was added.
const ConflictGraph::InEdge* ConflictGraph::edge_between(uint32_t group, uint32_t next) {
  for (const Node member : groups_[next].members) {
    spend(1 + nodes_[member].in.size());
    for (const InEdge& edge : nodes_[member].in) {
      ++explained_;
      if (nodes_[edge.from].group == group) {
        return &edge;
      }
    }
    if (explained_ > kExplainedAtFirst + kExplainedPerEvent * statistics_.events) {
      return nullptr;
    }
  }
  TSOMON_CHECK(false, "an edge of the order has no accesses behind it");
  return nullptr;
}

// A path between two units of one group, as pairs (unit, edge that leads to it).
bool ConflictGraph::connect(Node from, Node to, std::vector<std::pair<Node, const InEdge*>>* path) {
  if (from == to) {
    return true;
  }
  const uint32_t group = nodes_[to].group;
  auto& reached = explaining_.reached;
  reached.assign(1, {to, 0, nullptr});
  const uint64_t round = ++explaining_.round;
  auto& met = explaining_.met;
  met.resize(nodes_.size());
  met[to] = round;
  for (size_t i = 0; i < reached.size(); ++i) {
    spend(1 + nodes_[reached[i].node].in.size());
    for (const InEdge& edge : nodes_[reached[i].node].in) {
      ++explained_;
      if (nodes_[edge.from].group != group || met[edge.from] == round) {
        continue;
      }
      met[edge.from] = round;
      reached.push_back({edge.from, i, &edge});
      if (edge.from == from) {
        for (size_t at = reached.size() - 1; at != 0; at = reached[at].parent) {
          path->emplace_back(reached[reached[at].parent].node, reached[at].edge);
        }
        return true;
      }
    }
    if (explained_ > kExplainedAtFirst + kExplainedPerEvent * statistics_.events) {
      return false;
    }
  }
  TSOMON_CHECK(false, "a strongly connected component is not connected");
  return false;
}

// The steps of the cycle that the edge from -> to, the last one added to `to`, closes.
bool ConflictGraph::explain(Node from, Node to, DetectedCycle* cycle) {
  const auto vertices = order_.cycle();
  std::vector<std::pair<Node, const InEdge*>> edges = {{to, &nodes_[to].in.back()}};
  for (size_t i = 0; i < vertices.size(); ++i) {
    Node leave = from;
    const InEdge* next = nullptr;
    if (i + 1 < vertices.size()) {
      next = edge_between(group_of_vertex_[vertices[i]], group_of_vertex_[vertices[i + 1]]);
      if (next == nullptr) {
        return false;
      }
      leave = next->from;
    }
    if (!connect(edges.back().first, leave, &edges)) {
      return false;
    }
    if (next != nullptr) {
      Node target = kNone;
      for (const Node member : groups_[group_of_vertex_[vertices[i + 1]]].members) {
        const auto& in = nodes_[member].in;
        if (!in.empty() && next >= in.data() && next < in.data() + in.size()) {
          target = member;
          break;
        }
      }
      edges.emplace_back(target, next);
    }
  }
  auto& steps = explaining_.steps;
  steps.clear();
  for (size_t i = 0; i < edges.size(); ++i) {
    add_step(edges[(i + edges.size() - 1) % edges.size()].second->target, *edges[i].second, &steps);
  }
  shorten(&steps);
  for (const Step& step : steps) {
    DetectedUnit unit = nodes_[step.leaves].unit;
    if (unit.shared()) {
      unit.finished = true;
      unit.first = unit.last = step.from->index;
    }
    cycle->steps.push_back({unit, *step.from, *step.to, step.kind});
  }
  return true;
}

// Where events of their own share a node the cycle enters it by the first and leaves it by any.
void ConflictGraph::add_step(const DetectedAccess& entered, const InEdge& edge,
                             std::vector<Step>* steps) const {
  if (nodes_[edge.from].unit.shared() && entered.index < edge.source.index) {
    steps->push_back({edge.from, EdgeKind::kProgramOrder, &entered, &edge.source});
  }
  steps->push_back({edge.from, edge.kind, &edge.source, &edge.target});
}

// Several steps of one thread in program order become one where its ends are ordered by themselves:
// under TSO everything is before a later store, and what drains the buffer before everything later.
void ConflictGraph::shorten(std::vector<Step>* all) {
  auto& steps = *all;
  const auto in_program_order = [](const Step& step) {
    return step.kind == EdgeKind::kProgramOrder && step.from->thread == step.to->thread;
  };
  const auto is = [](const DetectedAccess& access, uint32_t kinds) {
    return (kind_mask(access.kind) & kinds) != 0;
  };
  const auto jump = std::find_if_not(steps.begin(), steps.end(), in_program_order);
  if (jump == steps.end()) {
    return;
  }
  std::rotate(steps.begin(), jump + 1, steps.end());
  size_t kept = 0;
  size_t end = 0;         // of the steps in program order from here on in this thread
  size_t end_stores = 0;  // ... after the last one that leads to a store or a drain
  for (size_t i = 0; i < steps.size(); ++i) {
    const DetectedAccess& from = *steps[i].from;
    if (i >= end) {
      end = end_stores = i;
      for (; end < steps.size() && in_program_order(steps[end]) &&
             steps[end].to->thread == from.thread;
           ++end) {
        end_stores = is(*steps[end].to, kinds::kBuffered | kinds::kDrains) ? end + 1 : end_stores;
      }
    }
    const bool drains = is(from, kinds::kDrains);
    size_t last = drains ? end : end_stores;
    const auto ordered = [&](const DetectedAccess& to) {
      return from.index < to.index && (drains || is(to, kinds::kBuffered | kinds::kDrains));
    };
    while (last > i + 1 && !ordered(*steps[last - 1].to)) {
      --last;
    }
    last = std::max(last, i + 1) - 1;
    steps[i].to = steps[last].to;
    steps[kept++] = steps[i];
    i = last;
  }
  steps.resize(kept);
}

void ConflictGraph::report(DetectedCycle&& cycle) {
  const auto [known, is_new] =
      known_cycles_.try_emplace(hash_of(cycle), static_cast<uint32_t>(cycle_counts_.size()));
  cycle.kind = known->second;
  if (!is_new) {
    ++cycle_counts_[known->second];
    if (callbacks_->on_repeated) {
      callbacks_->on_repeated(cycle);
    }
    return;
  }
  cycle_counts_.push_back(1);
  ++statistics_.different_cycles;
  if (callbacks_->on_cycle) {
    callbacks_->on_cycle(cycle);
  }
}

}  // namespace tsomon
