// One execution of a whole trace: all its issues and commits, one after the other.
//
// Source      Theory sections 1, 2, 5 and 8.
// Purpose     A few executions, each made in one pass, decide most questions about a long trace:
//             one with a cycle of units proves a violation, one without proves that it is not
//             definite. The steps are those of a machine that is run: store buffers are first in,
//             first out, fences find them empty, loads return what was recorded, nobody acquires a
//             lock that is held. Directed edges and the order in which conflicting accesses were
//             issued are kept, and whatever orders are asked for beside them.
// Choice      Of the steps that may come next, the one with the smallest key does: the order of the
//             input, or one of the units, each with stores that commit at once or late. Or, back to
//             front, the one with the largest key comes last: then nothing comes before its turn
//             that no earlier one has to wait for.
//             Loads that find their value come before a store that would take it away. A store
//             waits until those have read that can have read nothing else, and, unless nothing else
//             can go on, until each thread has whose next load of the location wants what is there.
// Misses      Nothing is taken back: where a choice leads to a load that never finds its value,
//             there is no answer, though there may be an execution.
// Complexity  O(n * (threads + log n)) to build, O(n log n) for an execution, each event in turn.
//             Memory some 100 bytes an event.
// Thread-safety: immutable once built. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "offline/check/value_edges.h"
#include "tso/order/event_graph.h"
#include "tso/order/execution.h"
#include "tso/order/lock_exclusion.h"
#include "tso/order/reachability.h"
#include "tso/order/values.h"

namespace tsomon {

enum class CommitTime : uint8_t {
  kAtOnce,
  kUnitEnd,
  kRemoteAccess,  // just before the next access of another thread, in the order of the input
  kDrain,         // as late as the buffer allows
  kOnDemand,  // when something of an earlier place needs it; only where nothing is constrained()
};

struct ExecutionChoice {
  CommitTime commit = CommitTime::kAtOnce;
  // By unit, or event (OrderedUnits::by_event): all of one with a smaller number first. Empty: in
  // the order of the input.
  std::span<const uint32_t> place;
};

class FullExecutions {
 public:
  // `values`: nullptr where they do not count.
  FullExecutions(const OrderedUnits& in, const AccessIndex& accesses, const ValueReads* values);

  // One that has these orders of conflicting events of different threads, too.
  std::optional<std::vector<Step>> make(const ExecutionChoice& choice,
                                        std::span<const Edge> open) const;

  // Whether values or locks may refuse an execution that the order of steps allows.
  bool constrained() const { return values_ || exclusion_; }

 private:
  friend class ExecutionRun;

  uint32_t effect(uint32_t e) const { return in_.relation.is_store(e) ? 2 * e + 1 : 2 * e; }
  void add_steps_of_thread(std::vector<Edge>* steps) const;
  void add_directed(std::vector<Edge>* steps) const;
  void add_issues(const AccessIndex& accesses, std::vector<Edge>* steps) const;
  void add_before(uint32_t e, uint32_t step, std::vector<Edge>* steps) const;
  void add_open(const Edge& open, std::vector<Edge>* steps) const;
  void find_remote(const AccessIndex& accesses);
  std::vector<Step> on_demand(std::span<const uint32_t> place, std::span<const Edge> open) const;

  // Loads of one thread and location that have values, in program order.
  struct ValuedLoads {
    uint32_t begin = 0;  // in loads_
    uint32_t end = 0;
  };
  void find_loads();

  OrderedUnits in_;
  const AccessIndex& accesses_;
  Adjacency steps_;               // step 2e issues e, 2e + 1 commits it
  std::vector<uint32_t> before_;  // by step: how many come before it
  std::optional<RecordedValues> values_;
  std::optional<LockExclusion> exclusion_;
  std::vector<uint32_t> loads_;
  std::vector<ValuedLoads> of_pair_;  // by half the number of the list in the index
  std::vector<uint32_t> source_;      // by load: the store that alone explains it, or kNone
  std::vector<uint32_t> readers_;     // by store: of how many it is
  std::vector<uint32_t> remote_;      // by store: the next access of another thread
};

}  // namespace tsomon
