// Collection: units that no future cycle can use are dropped, their windows flagged, and those that
// no future cycle can tell apart become one.
#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "online/conflict_graph.h"
#include "tso/mixed_graph.h"
#include "tso/result.h"

namespace tsomon {
namespace {

constexpr size_t kMaxReportedMembers = 64;
constexpr size_t kMaxReachWords = size_t{1} << 22;

bool by_first_event(const DetectedUnit& a, const DetectedUnit& b) { return a.first < b.first; }

}  // namespace

// One collection: the units of one group count as one element. Elements are numbered: groups first,
// then the units without a group.
class ConflictGraph::Sweep {
 public:
  Sweep(ConflictGraph& graph, const OnWindow& on_window, size_t max_trails)
      : graph_(graph),
        on_window_(on_window),
        max_trails_(max_trails),
        groups_(static_cast<uint32_t>(graph.groups_.size())),
        closed_(graph.scratch_.closed),
        marked_(graph.scratch_.marked),
        work_(graph.scratch_.work) {}

  // True if units were merged.
  bool run(const std::function<bool(Node)>& closed, size_t max_retained) {
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
    return retained > max_retained && merge();
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
      const UnitNode& member = graph_.nodes_[node];
      if (member.trail != nullptr) {
        window->units.insert(window->units.end(), member.trail->begin(), member.trail->end());
      } else {
        window->units.push_back(member.unit);
        window->complete = window->complete && member.unit.merged == 0;
      }
      window->only_events = window->only_events && member.only_events;
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
      graph_.moved_to_[members[i]] = stays;
    }
    join_trails(members);
    for (size_t i = 1; i < members.size(); ++i) {
      UnitNode& gone = graph_.nodes_[members[i]];
      UnitNode& whole = graph_.nodes_[stays];
      whole.unit.merged += gone.unit.merged + 1;
      whole.unit.last = std::max(whole.unit.last, gone.unit.last);
      whole.only_events = whole.only_events && gone.only_events;
      // Most edges are between two of them.
      std::copy_if(gone.in.begin(), gone.in.end(), std::back_inserter(whole.in),
                   [&](const InEdge& edge) { return graph_.moved_to_[edge.from] != stays; });
      std::copy_if(gone.undirected.begin(), gone.undirected.end(),
                   std::back_inserter(whole.undirected),
                   [&](const Neighbour& edge) { return graph_.moved_to_[edge.other] != stays; });
      graph_.release(members[i]);
      graph_.moved_to_[members[i]] = stays;
    }
    graph_.statistics_.merged += members.size() - 1;
    if (group != kNoGroup) {
      auto& list = graph_.groups_[group].members;
      std::erase_if(list, [&](Node node) { return graph_.moved_to_[node] != node; });
    }
  }

  // Before the first of the units becomes all of them: the longest trail gets the others.
  void join_trails(std::span<const Node> members) {
    const auto length = [&](Node node) {
      const auto& trail = graph_.nodes_[node].trail;
      return trail != nullptr ? trail->size() : 0;
    };
    const Node longest = *std::max_element(members.begin(), members.end(),
                                           [&](Node a, Node b) { return length(a) < length(b); });
    graph_.trails_ -= length(longest);
    auto trail = std::move(graph_.nodes_[longest].trail);
    bool whole = true;
    for (const Node node : members) {
      UnitNode& member = graph_.nodes_[node];
      if (member.trail != nullptr) {
        trail->insert(trail->end(), member.trail->begin(), member.trail->end());
        graph_.drop_trail(member);
      } else if (member.unit.merged == 0) {
        trail = trail != nullptr ? std::move(trail) : std::make_unique<Trail>();
        trail->push_back(member.unit);
      } else {
        whole = whole && node == longest && trail != nullptr;
      }
    }
    if (whole && graph_.trails_ + trail->size() <= max_trails_) {
      graph_.trails_ += trail->size();
      graph_.nodes_[members.front()].trail = std::move(trail);
    }
  }

  ConflictGraph& graph_;
  const OnWindow& on_window_;
  const size_t max_trails_;
  const uint32_t groups_;         // elements below are groups
  std::vector<uint8_t>& closed_;  // of a node
  std::vector<uint8_t>& marked_;  // of an element
  std::vector<uint32_t>& work_;   // elements marked and not looked into
  Node alone_ = kNone;
};

void ConflictGraph::sweep(const std::function<bool(Node)>& closed, const OnWindow& on_window,
                          size_t max_retained, size_t max_trails) {
  if (merged_) {
    std::fill(moved_to_.begin(), moved_to_.end(), kNone);
  }
  moved_to_.resize(nodes_.size(), kNone);
  for (const Node node : in_use_) {
    moved_to_[node] = node;
    nodes_[node].last_from = kNone;
  }
  merged_ = Sweep(*this, on_window, max_trails).run(closed, max_retained);
  if (merged_) {
    forget_gone();
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
