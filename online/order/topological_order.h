// A directed acyclic graph that grows and shrinks, with an order of its nodes that agrees with
// every edge; an edge that would close a cycle is refused together with the cycle.
//
// Purpose     Cycle detection while a program runs. Usable alone: it knows nothing of units.
// Contract    Nodes are small integers from 1 on; the id of a removed node is given out again, its
//             place in the order is not: a new node is always last, so edges from older to newer
//             nodes agree with the order unless others have moved nodes. Ids passed in must be
//             of present nodes. An edge is in the graph at most once.
// Cycles      A refused edge leaves the graph unchanged. contract() is how to go on: it merges
//             the strongly connected component that the edge would have created into one node.
// Complexity  add_node O(1). insert_edge O(1) when the order agrees already, plus a scan of one
//             edge list for duplicates (the shorter of two when long; four entries at a time).
//             Otherwise a search from both ends at once, among the nodes that lie between the two
//             in the order: forwards from `to` the first in the order first, backwards from `from`
//             the last first, taking turns by the edges looked at, until the two sides pass each
//             other or one is through. What was looked into moves to the place where they passed.
//             The paper bounds n nodes and m edges without removals by O(m^1.5 log n) in all when
//             the sides take turns edge by edge; here they do so node by node. remove_node O(edges
//             of the node, and a scan of the list at the other end of each).
// Memory      100 bytes for every id used at the same time, up to twice that as room is doubled;
//             blocks of 64 bytes or more for nodes with more than six edges in one direction. No
//             allocation once the largest number of nodes and edges was reached.
// Thread-safety: none. Const functions may run concurrently with each other.
// Source      Haeupler, Kavitha, Mathew, Sen, Tarjan: Incremental Cycle Detection, Topological
//             Ordering, and Strong Component Maintenance, ACM TALG 8(1), 2012, section 3 (ordered
//             two-way search, on heaps) and section 6 (strong components). The order itself is
//             OrderList. Bender, Fineman, Gilbert, Tarjan (ACM TALG 12(2), 2016) have a better
//             bound for dense graphs.
// What it misses: an edge can only be removed with its node. A single insertion can take as long
//             as looking at all edges between its two ends. Removals void the bound on the sum of
//             all insertions. Removing a neighbour of a node with very many edges scans all of
//             them. Reachability between nodes without an edge is not answered.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "online/order/adjacency_lists.h"
#include "online/order/order_list.h"

namespace tsomon {

enum class EdgeInsertion : uint8_t {
  kInserted,
  kDuplicate,  // was there already
  kCycle,      // not inserted: would close a cycle, see TopologicalOrder::cycle()
};

class TopologicalOrder {
 public:
  using NodeId = uint32_t;
  static constexpr NodeId kNone = 0;  // never a node

  TopologicalOrder() { grow(kFirstBound); }

  NodeId add_node();              // last in the order, without edges
  void remove_node(NodeId node);  // and its edges

  EdgeInsertion insert_edge(NodeId from, NodeId to) {
    if (has_edge(from, to)) {
      return EdgeInsertion::kDuplicate;
    }
    if (!order_.before(from, to) && !reorder(from, to)) {
      return EdgeInsertion::kCycle;
    }
    out_.append(from, to);
    in_.append(to, from);
    ++edges_;
    return EdgeInsertion::kInserted;
  }
  // After kCycle, until the next change: the nodes of a path from `to` to `from` of the refused
  // edge, which would have closed it. Both ends are included; one node if they are the same.
  std::span<const NodeId> cycle() const { return cycle_; }

  // Makes one node of a path that cycle() has just returned and of every other node that lies on
  // a path between its ends: the strongly connected component that the refused edge would close.
  // Returns the node that stays, one of them; it has the edges of all of them to others.
  NodeId contract(std::span<const NodeId> path);
  // The nodes that the last contract() removed; until the next change. Their ids are free.
  std::span<const NodeId> absorbed() const { return absorbed_; }

  // Makes one node of `node` and `other`: the edges of `other` become edges of `node`, and `other`
  // is removed. False, and nothing is changed, if a third node lies on a path between them (cycle()
  // then has such a path, in either direction). An edge between the two is no obstacle.
  bool merge(NodeId node, NodeId other);

  bool contains(NodeId node) const { return node < id_bound_ && order_.contains(node); }
  bool has_edge(NodeId from, NodeId to) const {
    // Which of two short lists is shorter is a branch that costs more than it saves.
    return out_.size(from) <= kShort || out_.size(from) <= in_.size(to) ? out_.contains(from, to)
                                                                        : in_.contains(to, from);
  }
  // In no particular order; until the next change.
  std::span<const NodeId> successors(NodeId node) const { return out_.items(node); }
  std::span<const NodeId> predecessors(NodeId node) const { return in_.items(node); }

  // In the current order, which agrees with all edges but says nothing of nodes without a path.
  bool before(NodeId a, NodeId b) const { return order_.before(a, b); }
  NodeId first() const { return order_.first(); }  // kNone: there is none
  NodeId next(NodeId node) const { return order_.next(node); }

  size_t size() const { return nodes_; }
  size_t edges() const { return edges_; }
  NodeId id_bound() const { return id_bound_; }  // every id given out so far is below
  size_t memory_bytes() const;

  std::string check_invariants() const;  // O(nodes + edges^2 / nodes); empty, or what is wrong

 private:
  static constexpr NodeId kFirstBound = 64;
  static constexpr NodeId kMaxNodes = 1U << 31;
  static constexpr uint32_t kShort = 8;

  struct Visit {
    uint32_t mark = 0;      // epoch_: reached forwards from `to`; epoch_ + 1: backwards from `from`
    NodeId parent = kNone;  // the next node towards the start of its side of the search
  };
  void grow(NodeId bound);
  void next_epoch();
  bool reorder(NodeId from, NodeId to);
  void record_path(NodeId forward_end, NodeId backward_end);
  void absorb(NodeId node, NodeId other);
  void release(NodeId node);

  OrderList order_;
  AdjacencyLists out_;
  AdjacencyLists in_;
  std::vector<Visit> visits_;
  std::vector<NodeId> free_;  // ids to give out again
  NodeId id_bound_ = 1;
  size_t nodes_ = 0;
  size_t edges_ = 0;
  uint32_t epoch_ = 0U - 256;  // of the last search; starting over is not left to long runs
  // Of searches. looked_into_ has room for all nodes on either side of its middle.
  std::vector<NodeId> looked_into_;
  std::vector<OrderList::Placed> forward_;
  std::vector<OrderList::Placed> backward_;
  std::vector<NodeId> cycle_;
  std::vector<NodeId> absorbed_;
};

}  // namespace tsomon
