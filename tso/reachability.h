// Which events of a trace come before which, along directed edges.
//
// Source      Theory section 4: the directed order of one thread has width two once the forwarded
//             loads are left out, so two chains a thread (stores and fences; loads from memory)
//             and one clock entry per chain answer reachability.
// Complexity  O((n + edges) * threads) to build, 8 * threads bytes an event; a query is O(1), from
//             a forwarded load O(its direct successors).
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tso/event_graph.h"

namespace tsomon {

// Compressed rows: the successors of each event.
class Adjacency {
 public:
  Adjacency() = default;
  Adjacency(size_t nodes, const std::vector<Edge>& edges);
  std::span<const uint32_t> successors(uint32_t node) const {
    return {to_.data() + first_[node], to_.data() + first_[node + 1]};
  }
  size_t nodes() const { return first_.empty() ? 0 : first_.size() - 1; }

 private:
  std::vector<uint32_t> first_;
  std::vector<uint32_t> to_;
};

class Reachability {
 public:
  // Nothing when the edges have a cycle: no execution has this order.
  static std::optional<Reachability> build(const Relation& relation,
                                           const std::vector<Edge>& directed);

  // A path of at least one edge leads from `from` to `to`.
  bool reaches(uint32_t from, uint32_t to) const;
  const Adjacency& edges() const { return edges_; }

 private:
  Reachability() = default;

  uint32_t chains_ = 0;             // two a thread
  std::vector<uint32_t> chain_of_;  // kNone: a forwarded load
  std::vector<uint32_t> index_;     // from 1, within the chain
  std::vector<uint32_t> clocks_;    // chains_ entries an event: highest index that reaches it
  Adjacency edges_;
};

}  // namespace tsomon
