#include "online/conflict_graph.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "tso/mixed_graph.h"
#include "tso/result.h"

namespace tsomon {
namespace {

constexpr size_t kMaxReportedMembers = 64;
constexpr uint64_t kExplainedAtFirst = 1'000'000;  // edges looked at for explanations ...
constexpr uint64_t kExplainedPerEvent = 16;        // ... and how many more with every event
constexpr size_t kMaxReachWords = size_t{1} << 22;

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

bool by_first_event(const DetectedUnit& a, const DetectedUnit& b) { return a.first < b.first; }

}  // namespace

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
  added.only_events = unit.label == Interner::kNone;
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
  whole.vertex = stays;
  group_of_vertex_[stays] = survivor;
  for (const uint32_t group : others) {
    Group& part = groups_[group];
    for (const Node member : part.members) {
      nodes_[member].group = survivor;
    }
    whole.members.insert(whole.members.end(), part.members.begin(), part.members.end());
    whole.units += part.units;
    if (part.part != 0 && (whole.part == 0 || part.part < whole.part)) {
      whole.part = part.part;
    }
    part = Group();
    free_groups_.push_back(group);
  }
  if (whole.part == 0) {
    whole.part = ++parts_;
  }
  cycle.part = whole.part;
  cycle.part_units = whole.units;
  if (explained) {
    report(std::move(cycle));
  }
}

// An edge from a unit of one group to a unit of another, as it was added.
const ConflictGraph::InEdge* ConflictGraph::edge_between(uint32_t group, uint32_t next) {
  for (const Node member : groups_[next].members) {
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
  struct Reached {
    Node node = kNone;
    size_t parent = 0;
    const InEdge* edge = nullptr;  // from `node` towards the parent
  };
  std::vector<Reached> reached = {{to, 0, nullptr}};
  std::unordered_map<Node, bool> seen = {{to, true}};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const InEdge& edge : nodes_[reached[i].node].in) {
      ++explained_;
      if (nodes_[edge.from].group != nodes_[to].group || seen[edge.from]) {
        continue;
      }
      seen[edge.from] = true;
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
  TSOMON_CHECK(false, "a strongly connected part is not connected");
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
  for (size_t i = 0; i < edges.size(); ++i) {
    add_step(edges[(i + edges.size() - 1) % edges.size()].second->target, *edges[i].second, cycle);
  }
  return true;
}

// Where events of their own share a node the cycle enters it by the first and leaves it by any.
void ConflictGraph::add_step(const DetectedAccess& entered, const InEdge& edge,
                             DetectedCycle* cycle) const {
  DetectedUnit unit = nodes_[edge.from].unit;
  if (unit.shared()) {
    unit.finished = true;
    if (entered.index < edge.source.index) {
      unit.first = unit.last = entered.index;
      cycle->steps.push_back({unit, entered, edge.source, EdgeKind::kProgramOrder});
    }
    unit.first = unit.last = edge.source.index;
  }
  cycle->steps.push_back({unit, edge.source, edge.target, edge.kind});
}

// Several steps of one thread in program order become one where its ends are ordered by themselves:
// under TSO everything is before a later store, and what drains the buffer before everything later.
void ConflictGraph::shorten(DetectedCycle* cycle) {
  auto& steps = cycle->steps;
  const auto in_program_order = [](const DetectedStep& step) {
    return step.kind == EdgeKind::kProgramOrder && step.from.thread == step.to.thread;
  };
  const auto jump = std::find_if_not(steps.begin(), steps.end(), in_program_order);
  if (jump == steps.end()) {
    return;
  }
  std::rotate(steps.begin(), jump + 1, steps.end());
  size_t kept = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const DetectedAccess from = steps[i].from;
    size_t last = i;
    for (size_t k = i + 1; k < steps.size() && in_program_order(steps[i]) &&
                           in_program_order(steps[k]) && steps[k].to.thread == from.thread;
         ++k) {
      const DetectedAccess& to = steps[k].to;
      const bool ordered = (kind_mask(to.kind) & (kinds::kStores | kinds::kDrains)) != 0 ||
                           (kind_mask(from.kind) & kinds::kDrains) != 0;
      last = ordered && from.index < to.index ? k : last;
    }
    steps[i].to = steps[last].to;
    steps[kept++] = steps[i];
    i = last;
  }
  steps.resize(kept);
}

void ConflictGraph::report(DetectedCycle&& cycle) {
  shorten(&cycle);
  const auto [known, is_new] =
      known_cycles_.try_emplace(hash_of(cycle), static_cast<uint32_t>(cycle_counts_.size()));
  if (!is_new) {
    ++cycle_counts_[known->second];
    return;
  }
  cycle_counts_.push_back(1);
  ++statistics_.different_cycles;
  if (callbacks_->on_cycle) {
    callbacks_->on_cycle(cycle);
  }
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
  moved_to_[node] = kNone;
  free_nodes_.push_back(node);
  --live_;
}

// ---- Collection

// One collection: the units of one group count as one element. Elements are numbered: groups first,
// then the units without a group.
class ConflictGraph::Sweep {
 public:
  Sweep(ConflictGraph& graph, const OnWindow& on_window)
      : graph_(graph),
        on_window_(on_window),
        groups_(static_cast<uint32_t>(graph.groups_.size())),
        closed_(graph.scratch_.closed),
        marked_(graph.scratch_.marked),
        work_(graph.scratch_.work) {}

  // True if units were merged.
  bool run(const std::function<bool(Node)>& closed) {
    closed_.assign(graph_.nodes_.size(), 0);
    marked_.assign(groups_ + graph_.nodes_.size(), 0);
    work_.clear();
    for (const Node node : graph_.in_use_) {
      closed_[node] = closed(node) ? 1 : 0;
      if (closed_[node] == 0) {
        mark(element_of(node));
      }
    }
    while (!work_.empty()) {
      const uint32_t element = work_.back();
      work_.pop_back();
      if (element < groups_) {
        for (const Vertex next : graph_.order_.successors(graph_.groups_[element].vertex)) {
          mark(graph_.group_of_vertex_[next]);
        }
      }
      for (const Node node : members(element)) {
        for (const Neighbour& neighbour : graph_.nodes_[node].undirected) {
          mark(element_of(neighbour.other));
        }
      }
    }
    std::vector<uint32_t>& dropped = graph_.scratch_.elements;
    dropped.clear();
    size_t retained = 0;
    for (const Node node : graph_.in_use_) {
      const uint32_t element = element_of(node);
      if (marked_[element] != 0) {
        retained += closed_[node];
      } else if (members(element).front() == node) {
        dropped.push_back(element);
      }
    }
    flag(dropped);
    for (const uint32_t element : dropped) {
      drop(element);
    }
    // Undirected edges end at dropped units only if both ends are dropped.
    if (!dropped.empty()) {
      graph_.forget_gone();
      for (const Node node : graph_.in_use_) {
        std::erase_if(graph_.nodes_[node].in,
                      [this](const InEdge& edge) { return graph_.moved_to_[edge.from] == kNone; });
      }
    }
    return retained > graph_.max_retained_ && merge();
  }

 private:
  uint32_t element_of(Node node) const {
    const uint32_t group = graph_.nodes_[node].group;
    return group != kNoGroup ? group : groups_ + node;
  }
  // Valid until the graph changes.
  std::span<const Node> members(uint32_t element) {
    if (element < groups_) {
      return graph_.groups_[element].members;
    }
    alone_ = element - groups_;
    return {&alone_, 1};
  }
  void mark(uint32_t element) {
    if (marked_[element] == 0) {
      marked_[element] = 1;
      work_.push_back(element);
    }
  }

  // The edges between the given elements, in their local numbers; `of_element` translates, and has
  // kNone for all others.
  std::vector<MixedEdge> edges_between(std::span<const uint32_t> elements,
                                       const std::vector<uint32_t>& of_element) {
    std::vector<MixedEdge> edges;
    for (uint32_t to = 0; to < elements.size(); ++to) {
      for (const Node node : members(elements[to])) {
        for (const InEdge& edge : graph_.nodes_[node].in) {
          const uint32_t from = of_element[element_of(edge.from)];
          if (from != kNone && from != to) {
            edges.push_back({from, to, false});
          }
        }
        for (const Neighbour& neighbour : graph_.nodes_[node].undirected) {
          const uint32_t other = of_element[element_of(neighbour.other)];
          if (node < neighbour.other && other != kNone && other != to) {
            edges.insert(edges.end(), neighbour.several ? 2 : 1, {to, other, true});
          }
        }
      }
    }
    return edges;
  }
  std::vector<uint32_t> local_numbers(std::span<const uint32_t> elements) const {
    std::vector<uint32_t> local(marked_.size(), kNone);
    for (uint32_t i = 0; i < elements.size(); ++i) {
      local[elements[i]] = i;
    }
    return local;
  }

  // Windows among the given elements, which gain no edges any more.
  void flag(std::span<const uint32_t> elements) {
    std::vector<Window> windows;
    // Between elements directed edges alone close no cycle.
    const bool open_order = std::any_of(elements.begin(), elements.end(), [&](uint32_t element) {
      const auto units = members(element);
      return std::any_of(units.begin(), units.end(),
                         [&](Node node) { return !graph_.nodes_[node].undirected.empty(); });
    });
    MixedParts parts;
    if (open_order) {
      parts = split_into_parts(static_cast<uint32_t>(elements.size()),
                               edges_between(elements, local_numbers(elements)));
      windows.resize(parts.count);
    }
    for (uint32_t i = 0; i < elements.size(); ++i) {
      const auto units = members(elements[i]);
      if (open_order && parts.part_of_node[i] != MixedParts::kNone) {
        add_members(units, &windows[parts.part_of_node[i]]);
      } else if (units.size() > 1) {
        add_members(units, &windows.emplace_back());
      }
    }
    for (Window& window : windows) {
      // A valid orientation is acyclic over events, hence over units of one event each.
      if (window.only_events && !window.directed) {
        continue;
      }
      std::sort(window.units.begin(), window.units.end(), by_first_event);
      on_window_(std::move(window));
    }
  }

  void add_members(std::span<const Node> units, Window* window) {
    window->directed = window->directed || units.size() > 1;
    for (const Node node : units) {
      window->units.push_back(graph_.nodes_[node].unit);
      window->complete = window->complete && graph_.nodes_[node].unit.merged == 0;
      window->only_events = window->only_events && graph_.nodes_[node].only_events;
    }
  }

  void drop(uint32_t element) {
    const auto units = members(element);
    graph_.statistics_.collected += units.size();
    for (const Node node : units) {
      graph_.release(node);
    }
    drop_vertex(element);
  }

  // The units stay as they are, without a group.
  void drop_vertex(uint32_t group) {
    if (group >= groups_) {
      return;
    }
    Group& gone = graph_.groups_[group];
    if (gone.part != 0 && graph_.callbacks_->on_part) {
      DetectedPart part{gone.part, gone.units, {}};
      for (const Node node : gone.members) {
        if (part.members.size() < kMaxReportedMembers) {
          part.members.push_back(graph_.nodes_[node].unit);
        }
      }
      std::sort(part.members.begin(), part.members.end(), by_first_event);
      graph_.callbacks_->on_part(part);
    }
    graph_.group_of_vertex_[gone.vertex] = kNoGroup;
    graph_.order_.remove_node(gone.vertex);
    for (const Node node : gone.members) {
      graph_.nodes_[node].group = kNoGroup;
    }
    gone.members.clear();
    gone.vertex = TopologicalOrder::kNone;
    graph_.free_groups_.push_back(group);
  }

  // Elements reached from the same open ones, by directed edges and by all edges alike, become one.
  bool merge() {
    std::vector<uint32_t> elements;
    std::vector<uint32_t> roots;
    for (uint32_t element = 0; element < marked_.size(); ++element) {
      if (marked_[element] == 0) {
        continue;
      }
      const auto units = members(element);
      if (std::any_of(units.begin(), units.end(), [&](Node node) { return closed_[node] == 0; })) {
        roots.push_back(static_cast<uint32_t>(elements.size()));
      }
      elements.push_back(element);
    }
    const auto count = static_cast<uint32_t>(elements.size());
    const size_t words = (roots.size() + 63) / 64;
    if (count * words > kMaxReachWords) {
      return false;
    }
    const std::vector<MixedEdge> edges = edges_between(elements, local_numbers(elements));
    std::vector<MixedEdge> directed;
    std::copy_if(edges.begin(), edges.end(), std::back_inserter(directed),
                 [](const MixedEdge& edge) { return !edge.undirected; });
    const auto by_all = reached_from(count, edges, roots);
    const auto by_directed =
        directed.size() == edges.size() ? by_all : reached_from(count, directed, roots);
    std::vector<bool> open(count, false);
    for (const uint32_t root : roots) {
      open[root] = true;
    }
    std::map<std::vector<uint64_t>, std::vector<uint32_t>> classes;
    std::vector<uint64_t> roots_of;  // of one element
    for (uint32_t i = 0; i < count; ++i) {
      const auto units = members(elements[i]);
      if (open[i]) {
        std::vector<Node> finished;
        std::copy_if(units.begin(), units.end(), std::back_inserter(finished),
                     [&](Node node) { return closed_[node] != 0; });
        merge_members(finished);
        continue;
      }
      const auto at = static_cast<ptrdiff_t>(i * words);
      const auto size = static_cast<ptrdiff_t>(words);
      roots_of.assign(by_all.begin() + at, by_all.begin() + at + size);
      roots_of.insert(roots_of.end(), by_directed.begin() + at, by_directed.begin() + at + size);
      roots_of.push_back(graph_.nodes_[units.front()].set);
      classes[roots_of].push_back(elements[i]);
    }
    for (const auto& [key, alike] : classes) {
      std::vector<Node> all;
      for (const uint32_t element : alike) {
        const auto units = members(element);
        all.insert(all.end(), units.begin(), units.end());
      }
      if (all.size() == 1) {
        continue;
      }
      flag(alike);
      for (const uint32_t element : alike) {
        drop_vertex(element);
      }
      merge_members(all);
    }
    graph_.rewrite_edges();
    return true;
  }

  // The first of the units stays, with the edges of all of them.
  void merge_members(std::vector<Node>& members) {
    if (members.size() < 2) {
      return;
    }
    const auto earliest = std::min_element(members.begin(), members.end(), [&](Node a, Node b) {
      return by_first_event(graph_.nodes_[a].unit, graph_.nodes_[b].unit);
    });
    std::iter_swap(members.begin(), earliest);
    const Node stays = members.front();
    const uint32_t group = graph_.nodes_[stays].group;
    for (size_t i = 1; i < members.size(); ++i) {
      UnitNode& gone = graph_.nodes_[members[i]];
      UnitNode& whole = graph_.nodes_[stays];
      whole.unit.merged += gone.unit.merged + 1;
      whole.unit.last = std::max(whole.unit.last, gone.unit.last);
      whole.only_events = whole.only_events && gone.only_events;
      whole.in.insert(whole.in.end(), gone.in.begin(), gone.in.end());
      whole.undirected.insert(whole.undirected.end(), gone.undirected.begin(),
                              gone.undirected.end());
      graph_.release(members[i]);
      graph_.moved_to_[members[i]] = stays;
    }
    graph_.statistics_.merged += members.size() - 1;
    if (group != kNoGroup) {
      auto& list = graph_.groups_[group].members;
      std::erase_if(list, [&](Node node) { return graph_.moved_to_[node] != node; });
    }
  }

  ConflictGraph& graph_;
  const OnWindow& on_window_;
  const uint32_t groups_;         // elements below are groups
  std::vector<uint8_t>& closed_;  // of a node
  std::vector<uint8_t>& marked_;  // of an element
  std::vector<uint32_t>& work_;   // elements marked and not looked into
  Node alone_ = kNone;
};

void ConflictGraph::sweep(const std::function<bool(Node)>& closed, const OnWindow& on_window) {
  if (merged_) {
    std::fill(moved_to_.begin(), moved_to_.end(), kNone);
  }
  moved_to_.resize(nodes_.size(), kNone);
  for (const Node node : in_use_) {
    moved_to_[node] = node;
    nodes_[node].last_from = kNone;
  }
  merged_ = Sweep(*this, on_window).run(closed);
  if (merged_) {
    forget_gone();
  }
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
