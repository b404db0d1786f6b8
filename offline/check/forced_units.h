// What orders of units every execution without a cycle has. Where these contradict each other, every
// execution has a cycle: the trace is certainly violated.
//
// Source      Theory 5.1; the search draws the same inside a component (offline/check/serial_search.h).
// Method      Without a cycle the units come one after the other. What certainly comes before what
//             says more then: a load that was issued before a store of another thread, and may be
//             forwarded from a store of its own, comes before that one if its own store does; and
//             if it comes after it, so does its own store. This is drawn to a fixed point, with a
//             clock for each unit: of each thread the last unit before it. A unit before itself is
//             the contradiction.
// Assuming    An order of two units is refuted if it leads to a contradiction, drawn in the same
//             way; where the other order is refuted as well, so is all.
// Misses      What values, locks, and the order of issues say of units that come one after the other.
// Complexity  O(n * threads * log n) where each clock changes a few times; all work is bounded:
//             what has not been drawn by then is not. A question costs 4 bytes to be copied for a unit and a thread, and what
//             it changes. Memory 8 bytes for a unit and a thread, some 50 for an event.
// Thread-safety: none. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_set>
#include <utility>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "offline/check/thread_lists.h"
#include "tso/order/event_graph.h"
#include "tso/order/reachability.h"

namespace tsomon {

class ForcedUnits {
 public:
  // Whether it can be asked: of serializability, where issues are ordered.
  static bool applies(const OrderedUnits& in);

  // `certain`: edges between units that every execution has, without a cycle.
  ForcedUnits(const OrderedUnits& in, const AccessIndex& accesses, const ThreadLists& lists,
              const std::vector<Edge>& certain);

  // No execution is without a cycle. False: that is not known.
  bool contradiction() const { return found_; }
  // From now on the first unit comes before the second.
  void add(uint32_t from, uint32_t to);
  // No execution without a cycle has it so.
  bool refutes(uint32_t from, uint32_t to);
  // What follows from the certain edges and those that were added, beside these.
  std::vector<Edge> derived() const;

 private:
  uint32_t* clock(uint32_t node) { return clocks_.data() + uint64_t{node} * threads_; }
  ThreadId thread(uint32_t node) const { return in_.units[node].thread; }
  void number_units();
  void find_sources();
  void in_time(const std::vector<Edge>& certain);
  void count(uint64_t steps);
  void draw();
  void wait(uint32_t node);
  void analyse(uint32_t node);
  void pass_on(uint32_t from, uint32_t to);
  void derive(uint32_t from, uint32_t to);
  void look_at_store(uint32_t node, uint32_t w);
  void look_at_load(uint32_t node, uint32_t r);

  OrderedUnits in_;
  const Relation& relation_;
  const AccessIndex& accesses_;
  const ThreadLists& lists_;
  ThreadId threads_;
  Adjacency certain_;
  std::vector<std::vector<uint32_t>> derived_;  // by unit: what comes after it
  std::unordered_set<uint64_t> known_;          // of these, pairs that no clock shows
  std::vector<Edge> log_;                       // of these, while something is assumed
  bool assuming_ = false;
  std::vector<uint32_t> number_;  // in their threads
  // All units of the thread up to that one come before what the unit comes before; one more than
  // its number. Of loads alone nothing is taken for certain: ThreadLists::full_from() says what
  // units may lead to.
  std::vector<uint32_t> floor_;
  Adjacency accessed_;
  // By list of loads the units, one more than their numbers, of the stores that they may be forwarded
  // from; of the load before where there is none.
  std::vector<std::vector<uint32_t>> sources_;
  std::vector<std::vector<int64_t>> issued_;
  std::vector<uint32_t> order_;  // that keeps what is certain
  std::vector<uint32_t> place_;
  std::vector<uint32_t> clocks_;
  std::vector<bool> waits_;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> waiting_;  // places
  uint64_t steps_ = 0;
  uint64_t most_steps_;
  bool found_ = false;
};

}  // namespace tsomon
