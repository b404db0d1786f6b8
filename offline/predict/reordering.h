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
//             A semaphore has been posted as often as it takes when it is taken; of the posts the
//             first one in the trace that can come before is chosen.
//             The initial value is a write before everything, so free reads need nothing.
//             With store buffers (model.h) a read comes after w only if w is of another thread, or
//             cannot be forwarded: all that read says holds as it is.
// Choice      What is not forced keeps the order of the trace, but only where a linear order would
//             otherwise break a read or a lock: each choice is closed before the next one is made.
// Window      The nodes from a given one on. What comes before them is as in the trace: bound reads
//             that saw a write from there come before all writes of the window, and a section that
//             is open there ends before others begin. Orders that need more are not found; but a
//             cycle of what is forced without this is one in every larger window, too.
// Result      No order when the forced order has a cycle. With two threads and all nodes in the
//             window that is exact; with more, a choice may have been the wrong one. Whoever uses
//             an order validates it.
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

  enum class Answer : uint8_t {
    kOrder,
    kNone,   // whatever the window
    kOther,  // not with this one
  };

  explicit Reordering(const Model& model);

  // So many nodes of each thread, and these pairs of them in this order. The window begins with
  // `first`. What comes before may stay as it is in the trace if `fixed`; otherwise no order is
  // looked for, only whether there is none.
  Answer look(const std::vector<uint32_t>& counts, std::span<const Pair> asked, NodeId first,
              bool fixed);
  // The nodes of the window, after kOrder.
  const std::vector<NodeId>& order() const { return order_; }

 private:
  bool in_set(NodeId id) const {
    return model_.node(id).position < counts_[model_.node(id).thread];
  }
  // Whose order is looked for.
  bool inside(NodeId id) const { return id >= first_ && in_set(id); }
  // Number among the nodes of the window.
  uint32_t local(NodeId id) const {
    const Node& node = model_.node(id);
    return offset_[node.thread] + node.position;
  }
  bool bound(NodeId id) const {
    return model_.node(id).bound_at() <= counts_[model_.node(id).thread];
  }
  const uint32_t* clock(NodeId id) const;
  uint32_t known(NodeId id, uint32_t thread) const;
  bool ordered(NodeId a, NodeId b) const;

  void clear();
  void choose_window(NodeId first);
  bool begin(std::span<const Pair> asked);
  bool fix_start();
  bool first_writes_last(uint32_t cell);
  bool before_writes(NodeId read, uint32_t cell);
  bool first_sections_end(uint32_t thread);
  bool mend();
  bool open_sections_last();
  void enqueue(NodeId id);
  bool add(NodeId from, NodeId to);
  bool join(NodeId to, NodeId from);
  bool close();
  bool propagate(NodeId id);
  bool apply_rules(NodeId id);
  bool read_rule(NodeId id, const Use& use);
  bool write_rule(NodeId id, const Use& use);
  bool readers_first(uint32_t cell, uint32_t seen, NodeId write);
  bool lock_rule(NodeId id);
  std::vector<NodeId> linear() const;
  bool in_buffer(uint32_t source, NodeId read, const std::vector<uint32_t>& done) const;
  std::vector<Pair> broken(const std::vector<NodeId>& order);
  void broken_locks(NodeId id, std::vector<Pair>* pairs);
  struct Counting {
    int64_t count = 0;
    std::vector<NodeId> early;  // posts that are counted before their turn
  };
  void broken_count(NodeId id, const std::vector<uint32_t>& done, std::vector<Pair>* pairs);
  int64_t count_at_start(const Counter& counter) const;

  const Model& model_;
  std::vector<uint32_t> counts_;
  NodeId first_ = 0;
  std::vector<uint32_t> base_;     // nodes of each thread before the window
  std::vector<uint32_t> offset_;   // local() less the position, modulo 2^32, by thread
  std::vector<uint32_t> changed_;  // number of the clock in clocks_, by local(); kNone: the model's
  std::vector<uint32_t> clocks_;
  std::vector<NodeId> nodes_;  // of the set, in trace order
  FlatMap<NodeId, uint32_t> first_edge_;
  struct Edge {
    NodeId to = kNone;
    uint32_t next = kNone;
  };
  std::vector<Edge> edges_;
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> queue_;
  std::vector<bool> queued_;  // by local()
  std::vector<NodeId> order_;
  std::vector<uint32_t> last_use_;             // of the replay, by cell
  std::vector<std::vector<uint32_t>> inside_;  // likewise: sections, by lock
  std::vector<Counting> counting_;             // likewise: by semaphore
};

}  // namespace tsomon::predict
