// The conflict graph of the units that still matter.
//
// Source      Theory sections 2, 3 and 7. The collection by marking and the merging of units that
//             are reached from the same unfinished units are this project's own.
// Purpose     Nodes are units of work, edges the conflicts that some policy finds between them. A
//             directed edge that closes a cycle is reported at once with the path and the two
//             accesses of every edge, and the strongly connected component becomes one node of the
//             order. Undirected edges are kept for the candidates, which sweep() looks for.
// Collection  sweep() marks what unfinished (or undrained) units reach, undirected edges counting
//             both ways, and drops the rest: a finished, drained unit gains no incoming edge, so
//             what no such unit reaches lies on no future cycle. When more than `ask_at` finished
//             units remain, it is asked what else is known of their order, and those are dropped,
//             too, that no unfinished unit reaches in that order.
//             When more than `max_retained` still remain, those that are reached from the same set
//             of unfinished units, by directed edges and by all edges alike, are merged: no future
//             cycle can tell them apart. A merged unit stands for all of them in later reports. In
//             a candidate it is replaced by its trail, the units that were merged, where there is one.
// Complexity  An edge: topological_order.h. sweep(): O(units + edges), with merging times the
//             number of unfinished units / 64.
// Files       conflict_graph.cpp: nodes and edges; conflict_cycles.cpp: cycles and their reports;
//             conflict_sweep.cpp: collection, candidates and merging.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <tsl/robin_map.h>

#include "online/graph/detected.h"
#include "online/graph/value_order.h"
#include "online/order/topological_order.h"

namespace tsomon {

class ConflictGraph {
 public:
  using Node = uint32_t;
  static constexpr Node kNone = 0xFFFFFFFFU;

  // A group of units that lie on common cycles of directed and undirected edges.
  struct Candidate {
    std::vector<DetectedUnit> units;
    bool directed = false;
    bool complete = true;
    bool only_events = true;           // no unit has more than one event: there is no cycle
    std::vector<uint64_t> components;  // as DetectedCandidate::components
  };
  using OnCandidate = std::function<void(Candidate&&)>;

  // `by_event`: single events can lie on cycles, too, for their thread orders them further than
  // executions need to.
  explicit ConflictGraph(const DetectorCallbacks* callbacks, bool by_event = false)
      : callbacks_(callbacks), by_event_(by_event) {}

  // A unit without edges. Ids are given out again after sweep().
  Node add_unit(const DetectedUnit& unit, uint32_t set = Interner::kNone);
  DetectedUnit& unit(Node node) { return nodes_[node].unit; }
  const DetectedUnit& unit(Node node) const { return nodes_[node].unit; }
  // Of a merged unit: all that it stands for. nullptr: too many, or it is not merged.
  const std::vector<DetectedUnit>* trail(Node node) const { return nodes_[node].trail.get(); }

  // `access` makes the two accesses that make the edge; it is called only for a new edge.
  template <typename Accesses>
  void add_directed(Node from, Node to, EdgeKind kind, const Accesses& accesses) {
    if (from == to || nodes_[to].last_from == from) {
      return;
    }
    nodes_[to].last_from = from;
    if (!joined(from, to)) {
      insert(from, to, kind, accesses);
    }
  }
  // `several`: there is more than one pair of accesses behind it.
  void add_undirected(Node a, Node b, bool several);

  size_t size() const { return live_; }
  // The nodes of all units, in no particular order; until units are added or collected.
  const std::vector<Node>& in_use() const { return in_use_; }

  struct SweepBounds {
    size_t ask_at = 0;        // finished units that remain, before it is asked for a known order
    size_t max_retained = 0;  // ... before some are merged
    size_t max_trails = 0;    // merged units of which it stays known which they were
  };
  // What is known of the order of some units, by their places in `units`.
  struct Known {
    std::vector<Node> units;
    ValueOrder order;
  };
  using AskOrder = std::function<std::optional<Known>()>;
  // `closed` tells whether a unit is finished and can gain no edge any more. Afterwards moved_to()
  // says what became of every node.
  void sweep(const std::function<bool(Node)>& closed, const OnCandidate& on_candidate,
             const SweepBounds& bounds, const AskOrder& ask_order);
  // Since the last sweep: the node itself, the one it was merged into, or kNone.
  Node moved_to(Node node) const { return moved_to_[node]; }
  bool merged() const { return merged_; }  // the last sweep merged units
  // For holders of nodes that do not follow every sweep: a node is still the same unit while its
  // generation is. Generations wrap around after 2^16 sweeps.
  uint16_t generation(Node node) const { return generations_[node]; }
  const uint16_t* generations() const { return generations_.data(); }  // until a unit is added

  const DetectorStatistics& statistics() const { return statistics_; }
  DetectorStatistics& statistics() { return statistics_; }
  const std::vector<uint64_t>& cycle_counts() const { return cycle_counts_; }
  void check_invariants() const;

 private:
  using Vertex = TopologicalOrder::NodeId;
  static constexpr uint32_t kNoGroup = 0xFFFFFFFFU;
  static constexpr size_t kFewNeighbours = 32;

  using Trail = std::vector<DetectedUnit>;

  struct InEdge {
    Node from = kNone;
    EdgeKind kind = EdgeKind::kConflict;
    DetectedAccess source;
    DetectedAccess target;
  };
  // A DetectedStep of a cycle that may be long, before it has become short.
  struct Step {
    Node leaves = kNone;
    EdgeKind kind = EdgeKind::kConflict;
    const DetectedAccess* from = nullptr;
    const DetectedAccess* to = nullptr;
  };
  struct Neighbour {
    Node other = kNone;
    bool several = false;  // more than one pair of accesses
  };
  struct UnitNode {
    DetectedUnit unit;
    uint32_t set = Interner::kNone;
    uint32_t group = kNoGroup;  // kNoGroup: has no directed edges
    Node last_from = kNone;
    bool used = false;
    bool only_events = false;      // the unit, and what was merged into it, are events of their own
    std::unique_ptr<Trail> trail;  // of a merged unit: all that it stands for, if not too many
    std::vector<InEdge> in;
    std::vector<Neighbour> undirected;
    std::unique_ptr<tsl::robin_map<Node, uint32_t>> places;  // in `undirected`, when it is long
  };
  // The units of one vertex of the order.
  struct Group {
    Vertex vertex = TopologicalOrder::kNone;
    std::vector<Node> members;
    uint64_t component = 0;  // numbered when it has a cycle
    uint64_t units = 0;      // ever
  };

  bool joined(Node a, Node b) const {
    return nodes_[a].group != kNoGroup && nodes_[a].group == nodes_[b].group;
  }
  template <typename Accesses>
  void insert(Node from, Node to, EdgeKind kind, const Accesses& accesses) {
    const Vertex a = vertex(from);
    const Vertex b = vertex(to);
    const EdgeInsertion result = order_.insert_edge(a, b);
    if (result == EdgeInsertion::kDuplicate) {
      return;
    }
    ++statistics_.directed_edges;
    InEdge& edge = nodes_[to].in.emplace_back();
    edge.from = from;
    edge.kind = kind;
    accesses(edge.source, edge.target);
    if (result == EdgeInsertion::kCycle) {
      close_cycle(from, to);
    }
  }

  // The edge in the list of `where`; nullptr: there is none.
  Neighbour* find_undirected(Node where, Node other);
  Vertex vertex(Node node);
  void close_cycle(Node from, Node to);
  bool explain(Node from, Node to, DetectedCycle* cycle);
  void add_step(const DetectedAccess& entered, const InEdge& edge, std::vector<Step>* steps) const;
  const InEdge* edge_between(uint32_t group, uint32_t next);
  bool connect(Node from, Node to, std::vector<std::pair<Node, const InEdge*>>* path);
  static void shorten(std::vector<Step>* all);
  void report(DetectedCycle&& cycle);
  void release(Node node);
  void drop_trail(UnitNode& unit) {
    trails_ -= unit.trail != nullptr ? unit.trail->size() : 0;
    unit.trail.reset();
  }
  void forget_gone();
  void rewrite_edges();
  class Sweep;
  friend class Sweep;

  const DetectorCallbacks* callbacks_;
  bool by_event_;
  TopologicalOrder order_;
  std::vector<UnitNode> nodes_;
  std::vector<uint16_t> generations_;  // of nodes; apart, for they are read often
  std::vector<Node> in_use_;           // and, during a sweep, such as have just been released
  std::vector<Node> free_nodes_;
  std::vector<Group> groups_;
  std::vector<uint32_t> free_groups_;
  std::vector<uint32_t> group_of_vertex_;
  std::vector<Node> moved_to_;
  bool merged_ = false;
  size_t trails_ = 0;  // units in all of them
  // Of sweeps, kept for their memory.
  struct Scratch {
    std::vector<uint8_t> closed;
    std::vector<uint8_t> marked;
    std::vector<uint32_t> work;
    std::vector<uint32_t> elements;
  };
  Scratch scratch_;
  // Of explain() and connect(), likewise.
  struct Reached {
    Node node = kNone;
    size_t parent = 0;
    const InEdge* edge = nullptr;  // from `node` towards the parent
  };
  struct Explaining {
    std::vector<Reached> reached;
    std::vector<uint64_t> met;  // by node: when it was
    uint64_t round = 0;
    std::vector<Step> steps;
  };
  Explaining explaining_;
  size_t live_ = 0;
  uint64_t parts_ = 0;
  // Looking for the edges behind a cycle costs a share of the events so far, not more.
  uint64_t explained_ = 0;
  std::unordered_map<uint64_t, uint32_t> known_cycles_;  // hash of locations -> in cycle_counts_
  std::vector<uint64_t> cycle_counts_;
  DetectorStatistics statistics_;
};

}  // namespace tsomon
