// Conflicts under SC or TSO: all directed and undirected edges between units, as events arrive.
//
// Source      Theory sections 2 and 5; the same relation as tso/model/relation.h, one event at a
//             time.
// Purpose     For every event the edges from the units before it that matter: in its thread the
//             latest store, load and fence (directed edges that follow from others are left out),
//             on its location what other threads did. An access is *visible* when its thread has
//             drained its store buffer since, in time that lies before the new event; visible
//             accesses are directed to it, others undirected, unless a chain of lock releases and
//             acquisitions orders them (a vector clock of store numbers for each thread).
// Events      outside every unit are units of their own, and most programs have more of them than
//             anything else. Such events, one after the other in a thread, share a node as long as
//             nothing but the first has an edge that leads to it, and the first comes before all
//             others: every path then enters by the first and may leave by any, so no cycle of
//             directed edges appears or is lost. Undirected edges may make more candidates,
//             never less. The release of a lock begins a node of its own.
// Robustness  All events are outside units, and each has an edge to the next of its thread. So the
//             first event of a shared node comes before all others of it.
// Hand-overs  order_hand_overs.h.
// Locks       Under Semantics::kPaper, too, a load that may have been forwarded is visible with its
//             store when another thread takes a lock that was released after the store; the paper's
//             relation leaves that order open.
// Parts       order_threads.h: store buffers and the order in a thread; order_locations.h:
//             conflicts, with what is kept for them and its bounds. Here: units, and what is done
//             with an event.
// Complexity  O(records of the location), and O(threads) for locks.
// Bounds      Stores that no fence ever makes visible would be kept for ever: past
//             DetectorTuning::max_pending_stores and max_pending_units the oldest are evicted, which
//             the statistics count in `evicted` and which makes the result incomplete. With a store
//             buffer of known capacity this does not happen.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "online/graph/policy.h"
#include "online/tso_policy/order_hand_overs.h"
#include "online/tso_policy/order_locations.h"
#include "online/tso_policy/order_threads.h"

namespace tsomon {

class OrderPolicy : public Policy {
 public:
  OrderPolicy(ConflictGraph& graph, const DetectorOptions& options);

  void add(const EventBlock& block, uint64_t first_index) override;
  void lost(ThreadId thread) override;
  bool closed(Node node) override;
  void before_sweep() override;
  void after_sweep() override;
  size_t locations() const override { return locations_.size(); }
  bool wants_sweep() const override { return locations_.many(); }

 private:
  static constexpr Node kNone = ConflictGraph::kNone;

  void boundary(const EventBlock& block, const Event& event, uint64_t index);
  Node unit_of(OrderThread& thread, const Event& event, uint64_t index) {
    if (thread.unit == kNone) {
      return new_unit(thread, event, index);
    }
    graph_.unit(thread.unit).last = index;
    return thread.unit;
  }
  Node new_unit(OrderThread& thread, const Event& event, uint64_t index);
  void end_unit(OrderThread& thread);
  void end_run(OrderThread& thread);
  template <uint8_t kStaticRoles>
  bool joins_coalesced(const OrderEvent& now) const;
  template <uint8_t kStaticRoles>
  void run_or_unit(OrderEvent& now);
  bool access_plainly(const EventBlock& block, const Event& event, uint64_t index, bool writes,
                      LocationId location);
  template <uint8_t kStaticRoles>
  void node(const EventBlock& block, const Event& event, uint64_t index, LocationId location);

  ConflictGraph& graph_;
  DetectorOptions options_;
  bool sc_ = false;
  bool by_event_ = false;            // there are no units (DetectorPolicy::kRobustness)
  uint64_t capacity_;                // of a store buffer
  std::array<uint8_t, 32> roles_{};  // by kind
  uint64_t next_ = 0;                // index of the next event
  OrderThreads threads_;
  OrderLocations locations_;
  OrderHandOvers hand_overs_;
  std::vector<UnitTime> unit_times_;  // by node
  std::vector<Node> undrained_;       // of before_sweep()
};

}  // namespace tsomon
