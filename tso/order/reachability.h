// Which events of a trace come before which, along directed edges.
//
// Source      Theory section 4: the directed order of one thread has width two once the forwarded
//             loads are left out, so two chains a thread (stores and fences; loads from memory)
//             and one clock entry per chain answer reachability.
//             A forwarded load is on no chain; what it reaches on each chain first stands for it.
//             Threads that run one after the other, by join and fork, share chains.
// Complexity  With `threads` that share none: O((n + edges) * threads) to build, 8 * threads bytes
//             an event, as much again for a forwarded load. A query is O(1), from a forwarded load
//             O(threads); between forwarded loads of one thread and different ranges, O(loads
//             between them) where ranges overlap or the store buffer is bounded. insert():
//             O(chains) for each event that gains a predecessor.
// Thread-safety: as a container.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tso/order/event_graph.h"
#include "tso/order/partial_order.h"

namespace tsomon {

// Compressed rows: the successors of each event.
class Adjacency {
 public:
  Adjacency() = default;
  Adjacency(size_t nodes, const std::vector<Edge>& edges);
  std::span<const uint32_t> successors(uint32_t node) const {
    return {to_.data() + first_[node], to_.data() + first_[node + 1]};
  }
  size_t size() const { return to_.size(); }  // edges
  size_t nodes() const { return first_.empty() ? 0 : first_.size() - 1; }

 private:
  std::vector<uint32_t> first_;
  std::vector<uint32_t> to_;
};

// The nodes in an order that agrees with the edges; of those that may come next, the one with the
// smallest key does (without keys: the smallest), and of equal ones the smallest. Without the nodes
// that lie on cycles or after them. O((nodes + edges) log nodes).
std::vector<uint32_t> smallest_first(const Adjacency& edges, std::span<const uint32_t> keys = {});

class Reachability {
 public:
  // Nothing when the edges have a cycle: no execution has this order.
  static std::optional<Reachability> build(const Relation& relation,
                                           const std::vector<Edge>& directed);

  // Adds an edge, not between forwarded loads. False: the edges would have a cycle; nothing is
  // changed.
  bool insert(Edge edge);
  // A path of at least one edge leads from `from` to `to`.
  bool reaches(uint32_t from, uint32_t to) const;
  // Of these events, by their places in the list. O(chains * events * log events + chains *
  // events^2 / 64), and line_reaches() for the pairs of forwarded loads of one location and thread.
  PartialOrder among(const std::vector<uint32_t>& events) const;
  // With those that were inserted once they are put together.
  const Adjacency& edges() const { return edges_; }
  void put_together();
  uint32_t chains() const { return chains_; }

 private:
  Reachability() = default;

  // A forwarded load: where its first_ begins, its thread, and the ranges connected by overlaps.
  struct Forwarded {
    size_t row = 0;
    ThreadId thread = 0;
    LocationId ranges = 0;
    bool one_range = true;
  };
  void find_forwarded(const Relation& relation);
  void reach_from_line(uint32_t load, uint32_t to);
  bool line_reaches(uint32_t from, uint32_t to) const;
  void order_forwarded(const std::vector<uint32_t>& events, std::vector<uint32_t> loads,
                       PartialOrder* order) const;

  uint32_t chains_ = 0;             // at most two a thread
  std::vector<uint32_t> chain_of_;  // kNone: a forwarded load
  std::vector<uint32_t> index_;     // from 1, within the chain; of a forwarded load in forwarded_
  std::vector<uint32_t> clocks_;    // chains_ entries an event: highest index that reaches it
  std::vector<Forwarded> forwarded_;
  std::vector<uint32_t> first_;  // chains_ entries a forwarded load: lowest index that it reaches
                                 // directly or through other forwarded loads
  bool ranges_mix_ = false;      // there are edges between forwarded loads of unconnected ranges
  Adjacency edges_;
  Adjacency lines_back_;  // between forwarded loads, from the later one
  // Edges that are not in edges_ yet, and for each event the last of those that leave it; for each
  // of them the one before.
  std::vector<Edge> inserted_;
  std::vector<uint32_t> last_inserted_;
  std::vector<uint32_t> before_inserted_;
};

}  // namespace tsomon
