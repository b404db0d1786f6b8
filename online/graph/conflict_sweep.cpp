// Collection: units that no future cycle can use are dropped, their candidates flagged, and those that
// no future cycle can tell apart become one.
#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "online/graph/conflict_graph.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/reachability.h"
#include "tso/support/result.h"
#include "tso/support/work.h"

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
  Sweep(ConflictGraph& graph, const OnCandidate& on_candidate, const SweepBounds& bounds)
      : graph_(graph),
        on_candidate_(on_candidate),
        bounds_(bounds),
        groups_(static_cast<uint32_t>(graph.groups_.size())),
        closed_(graph.scratch_.closed),
        marked_(graph.scratch_.marked),
        work_(graph.scratch_.work),
        dropped_(graph.scratch_.elements) {}

  // True if units were merged.
  bool run(const std::function<bool(Node)>& closed, const AskOrder& ask_order) {
    closed_.assign(graph_.nodes_.size(), 0);
    marked_.assign(groups_ + graph_.nodes_.size(), 0);
    work_.clear();
    spend(4 * graph_.in_use_.size());
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
        spend(1 + graph_.nodes_[node].undirected.size());
        for (const Neighbour& neighbour : graph_.nodes_[node].undirected) {
          mark(element_of(neighbour.other));
        }
      }
    }
    size_t retained = split_by_marks();
    flag(dropped_);
    drop_all();
    if (retained > bounds_.ask_at) {
      if (const auto known = ask_order()) {
        mark_by(*known);
        retained = split_by_marks();
        flag_by(*known);
        drop_all();
        forget_undirected();
        add_undirected(*known);
      }
    }
    return retained > bounds_.max_retained && merge();
  }

 private:
  // Elements without a mark are to be dropped. The number of finished units that have one.
  size_t split_by_marks() {
    dropped_.clear();
    size_t retained = 0;
    for (const Node node : graph_.in_use_) {
      const uint32_t element = element_of(node);
      if (marked_[element] != 0) {
        retained += closed_[node];
      } else if (members(element).front() == node) {
        dropped_.push_back(element);
      }
    }
    return retained;
  }

  void drop_all() {
    for (const uint32_t element : dropped_) {
      drop(element);
    }
    if (dropped_.empty()) {
      return;
    }
    graph_.forget_gone();
    const auto gone = [this](Node node) { return graph_.moved_to_[node] == kNone; };
    for (const Node node : graph_.in_use_) {
      spend(1 + graph_.nodes_[node].in.size());
      std::erase_if(graph_.nodes_[node].in, [&](const InEdge& edge) { return gone(edge.from); });
    }
  }

  // What unfinished units reach in the known order, and what those that it does not know reach by
  // any edges. (What has a mark is closed under directed edges, on which the graph relies where it
  // leaves out edges that follow from others.)
  void mark_by(const Known& known) {
    constexpr uint8_t kByOrder = 1;
    constexpr uint8_t kByEdges = 2;
    std::vector<uint32_t> place(graph_.nodes_.size(), kNone);
    for (uint32_t i = 0; i < known.units.size(); ++i) {
      place[known.units[i]] = i;
    }
    std::vector<Edge> ways;
    for (const MixedEdge& edge : known.order.edges) {
      ways.push_back({edge.from, edge.to});
      if (edge.undirected) {
        ways.push_back({edge.to, edge.from});
      }
    }
    const Adjacency successors(known.units.size(), ways);
    marked_.assign(marked_.size(), 0);
    const auto mark_as = [this](uint32_t element, uint8_t how) {
      if (marked_[element] < how) {
        marked_[element] = how;
        work_.push_back(element);
      }
    };
    for (const Node node : graph_.in_use_) {
      if (place[node] == kNone) {
        mark_as(element_of(node), kByEdges);
      } else if (closed_[node] == 0) {
        mark_as(element_of(node), kByOrder);
      }
    }
    while (!work_.empty()) {
      const uint32_t element = work_.back();
      work_.pop_back();
      const uint8_t how = marked_[element];
      if (element < groups_) {
        for (const Vertex next : graph_.order_.successors(graph_.groups_[element].vertex)) {
          mark_as(graph_.group_of_vertex_[next], how);
        }
      }
      for (const Node node : members(element)) {
        if (how == kByEdges) {
          for (const Neighbour& neighbour : graph_.nodes_[node].undirected) {
            mark_as(element_of(neighbour.other), how);
          }
        }
        spend(1);
        if (place[node] != kNone) {
          spend(successors.successors(place[node]).size());
          for (const uint32_t next : successors.successors(place[node])) {
            mark_as(element_of(known.units[next]), kByOrder);
          }
        }
      }
    }
  }

  // One candidate for all groups of units, since what is known of one tells something of others.
  void flag_by(const Known& known) {
    const std::vector<uint32_t> local = local_numbers(dropped_);
    std::vector<MixedEdge> edges;
    for (const MixedEdge& edge : known.order.edges) {
      const uint32_t from = local[element_of(known.units[edge.from])];
      const uint32_t to = local[element_of(known.units[edge.to])];
      if (from != kNone && to != kNone && from != to) {
        edges.push_back({from, to, edge.undirected});
      }
    }
    std::vector<Candidate> candidates = candidates_among(dropped_, edges);
    Candidate together;
    for (Candidate& candidate : candidates) {
      if (candidate.directed) {
        hand_over(std::move(candidate));
      } else if (!candidate.only_events) {
        together.only_events = false;
        together.units.insert(together.units.end(), candidate.units.begin(), candidate.units.end());
        together.complete = together.complete && candidate.complete;
      }
    }
    if (!together.units.empty()) {
      hand_over(std::move(together));
    }
  }

  // Undirected edges of what the marks by edges have left end there, too; not so by a known order.
  void forget_undirected() {
    for (const Node node : graph_.in_use_) {
      UnitNode& unit = graph_.nodes_[node];
      spend(1 + unit.undirected.size());
      std::erase_if(unit.undirected, [this](const Neighbour& neighbour) {
        return graph_.moved_to_[neighbour.other] == kNone;
      });
      unit.places.reset();
    }
  }

  // Between those that stay: some of their edges followed from others by way of what is gone.
  void add_undirected(const Known& known) {
    auto pairs = known.order.beyond_clock;
    std::sort(pairs.begin(), pairs.end());
    for (auto begin = pairs.begin(); begin != pairs.end();) {
      const auto end = std::find_if(begin, pairs.end(), [&](const auto& p) { return p != *begin; });
      const Node a = known.units[begin->first];
      const Node b = known.units[begin->second];
      const bool several = end - begin > 1;
      const bool stay = graph_.moved_to_[a] != kNone && graph_.moved_to_[b] != kNone;
      if (stay && (several || graph_.find_undirected(a, b) == nullptr)) {
        graph_.add_undirected(a, b, several);
      }
      begin = end;
    }
  }

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

  // Candidates among the given elements, which gain no edges any more.
  void flag(std::span<const uint32_t> elements) {
    // Between elements directed edges alone close no cycle.
    const bool open_order = std::any_of(elements.begin(), elements.end(), [&](uint32_t element) {
      const auto units = members(element);
      return std::any_of(units.begin(), units.end(),
                         [&](Node node) { return !graph_.nodes_[node].undirected.empty(); });
    });
    std::vector<MixedEdge> edges;
    if (open_order) {
      edges = edges_between(elements, local_numbers(elements));
    }
    for (Candidate& candidate : candidates_among(elements, edges)) {
      hand_over(std::move(candidate));
    }
  }

  // `edges` between the elements, by their places.
  std::vector<Candidate> candidates_among(std::span<const uint32_t> elements,
                                          const std::vector<MixedEdge>& edges) {
    std::vector<Candidate> candidates;
    MixedComponents components;
    if (!edges.empty()) {
      components = split_into_components(static_cast<uint32_t>(elements.size()), edges);
      candidates.resize(components.count);
    }
    for (uint32_t i = 0; i < elements.size(); ++i) {
      const auto units = members(elements[i]);
      if (!edges.empty() && components.component_of_node[i] != MixedComponents::kNone) {
        add_members(elements[i], units, &candidates[components.component_of_node[i]]);
      } else if (units.size() > 1) {
        add_members(elements[i], units, &candidates.emplace_back());
      }
    }
    return candidates;
  }

  void hand_over(Candidate&& candidate) {
    // A valid orientation is acyclic over events, hence over units of one event each.
    if (candidate.only_events && !candidate.directed) {
      return;
    }
    std::sort(candidate.units.begin(), candidate.units.end(), by_first_event);
    on_candidate_(std::move(candidate));
  }

  void add_members(uint32_t element, std::span<const Node> units, Candidate* candidate) {
    if (element < groups_ && graph_.groups_[element].component != 0) {
      candidate->components.push_back(graph_.groups_[element].component);
    }
    candidate->directed = candidate->directed || units.size() > 1;
    for (const Node node : units) {
      const UnitNode& member = graph_.nodes_[node];
      if (member.trail != nullptr) {
        candidate->units.insert(candidate->units.end(), member.trail->begin(), member.trail->end());
      } else {
        candidate->units.push_back(member.unit);
        candidate->complete = candidate->complete && member.unit.merged == 0;
      }
      candidate->only_events = candidate->only_events && member.only_events;
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
    if (gone.component != 0 && graph_.callbacks_->on_component) {
      DetectedComponent component{gone.component, gone.units, {}};
      for (const Node node : gone.members) {
        if (component.members.size() < kMaxReportedMembers) {
          component.members.push_back(graph_.nodes_[node].unit);
        }
      }
      std::sort(component.members.begin(), component.members.end(), by_first_event);
      graph_.callbacks_->on_component(component);
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
    if (whole && graph_.trails_ + trail->size() <= bounds_.max_trails) {
      graph_.trails_ += trail->size();
      graph_.nodes_[members.front()].trail = std::move(trail);
    }
  }

  ConflictGraph& graph_;
  const OnCandidate& on_candidate_;
  const SweepBounds& bounds_;
  const uint32_t groups_;           // elements below are groups
  std::vector<uint8_t>& closed_;    // of a node
  std::vector<uint8_t>& marked_;    // of an element
  std::vector<uint32_t>& work_;     // elements marked and not looked into
  std::vector<uint32_t>& dropped_;  // elements to be dropped, or that were
  Node alone_ = kNone;
};

void ConflictGraph::sweep(const std::function<bool(Node)>& closed, const OnCandidate& on_candidate,
                          const SweepBounds& bounds, const AskOrder& ask_order) {
  if (merged_) {
    std::fill(moved_to_.begin(), moved_to_.end(), kNone);
  }
  moved_to_.resize(nodes_.size(), kNone);
  for (const Node node : in_use_) {
    moved_to_[node] = node;
    nodes_[node].last_from = kNone;
  }
  merged_ = Sweep(*this, on_candidate, bounds).run(closed, ask_order);
  if (merged_) {
    forget_gone();
  }
}

}  // namespace tsomon
