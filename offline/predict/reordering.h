// The order of a set of nodes: what is forced, closed to a fixed point, and one that keeps it.
//
// Source      Cai, Yun, Wang, Qiao, Palsberg, Sound and Efficient Concurrency Bug Prediction
//             (ESEC/FSE 2021), algorithms 2 to 4.
// Forced      Program order, hard edges, and
//               read     a bound read comes after its write w; any other write w' that comes before
//                        the read comes before w, and any w' that comes after w comes after the
//                        read;
//               lock     if a section begins before the end of another one that it excludes, it
//                        ends before that begins; one that stays open comes last.
//             The initial value is a write before everything, so free reads need nothing.
// Choice      What is not forced keeps the order of the trace, but only where a linear order would
//             otherwise break a read or a lock: each choice is closed before the next one is made.
// Result      Nothing when the forced order has a cycle. With two threads that is exact; with more,
//             a choice may have been the wrong one. Whoever uses an order validates it.
// Complexity  O(c (k + log n + l)) for n nodes, k threads, c changes of clocks, l threads that
//             share a lock or a cell. A clock changes at most n times.
// Errors      Throws WorkEnded.
// Thread-safety: none; a reordering has scratch memory.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "offline/predict/model.h"
#include "tso/support/flat_map.h"

namespace tsomon::predict {

class Reordering {
 public:
  struct Pair {
    NodeId from = kNone;
    NodeId to = kNone;
  };

  explicit Reordering(const Model& model);

  // All nodes of the set, so many of each thread, and these pairs of them in this order.
  std::optional<std::vector<NodeId>> order(const std::vector<uint32_t>& counts,
                                           std::span<const Pair> asked = {});

 private:
  bool in_set(NodeId id) const {
    return model_.node(id).position < counts_[model_.node(id).thread];
  }
  bool bound(NodeId id) const {
    return model_.node(id).bound_at <= counts_[model_.node(id).thread];
  }
  const uint32_t* clock(NodeId id) const;
  uint32_t known(NodeId id, uint32_t thread) const;
  bool ordered(NodeId a, NodeId b) const;

  void clear();
  bool begin(std::span<const Pair> asked);
  bool open_sections_last();
  void enqueue(NodeId id);
  bool add(NodeId from, NodeId to);
  bool join(NodeId to, NodeId from);
  bool close();
  bool propagate(NodeId id);
  bool apply_rules(NodeId id);
  bool read_rule(NodeId id, const Use& use);
  bool write_rule(NodeId id, const Use& use);
  bool readers_first(const GroupedLists::Lists& readers, NodeId write);
  bool lock_rule(NodeId id);
  std::vector<NodeId> linear() const;
  std::vector<Pair> broken(const std::vector<NodeId>& order);
  void broken_locks(NodeId id, std::vector<Pair>* pairs);

  const Model& model_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> changed_;  // number of the clock in clocks_, by node; kNone: the model's
  std::vector<uint32_t> clocks_;
  std::vector<NodeId> nodes_;  // of the set, in trace order
  FlatMap<NodeId, uint32_t> first_edge_;
  struct Edge {
    NodeId to = kNone;
    uint32_t next = kNone;
  };
  std::vector<Edge> edges_;
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> queue_;
  std::vector<bool> queued_;
  std::vector<uint32_t> last_use_;             // of the replay, by cell
  std::vector<std::vector<uint32_t>> inside_;  // likewise: sections, by lock
};

}  // namespace tsomon::predict
