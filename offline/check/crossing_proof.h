// What shows that a trace is violated, and whether every execution of it is.
//
// Purpose     Asked about cycles of units that offline/check/crossing_units.h meets. An execution
//             that has one proves a violation and is its witness; one without proves that it is
//             not definite; a cycle that every execution has proves that it is.
// Direct      Where no load has a recorded value that says something, and no lock excludes
//             anything, cycles whose edges contradict each other are refused at once.
// Executions  A few executions of the whole trace are made: as they come, and with the edges of a
//             cycle. At most kMostExecutions for one trace, fewer of a long one.
// Definite    Where no cycle is certain, what all executions without a cycle have in common may
//             contradict itself (offline/check/forced_units.h). Else the exact search is asked
//             about the first events of the trace: if all their executions have a cycle, so have
//             all of the trace.
// Acyclic     An execution without a cycle is looked for in orders of the units: all that one thread
//             can do before the next one has to (offline/check/units_by_thread.h; its stores commit
//             late then, and its loads are forwarded), and that of their ends. Where an execution
//             does something against such an order, one of the two is decided for the next one.
// Misses      Executions that none of these choices leads to.
// Complexity  That of offline/check/full_execution.h and execution_cycle.h, so many times.
// Thread-safety: none. Throws WorkEnded.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "offline/check/execution_cycle.h"
#include "offline/check/forced_units.h"
#include "offline/check/full_execution.h"
#include "offline/check/thread_lists.h"

namespace tsomon {

class CrossingProof {
 public:
  static constexpr uint32_t kMostExecutions = 48;

  // `values`: nullptr where they are not to be looked at. All must outlive this.
  CrossingProof(const OrderedUnits& in, const AccessIndex& accesses, const ThreadLists& lists,
                const ValueReads* values);

  // Decides from the edges of a cycle alone.
  bool direct() const { return direct_; }

  // An execution that has a cycle, this one if it can.
  std::optional<Violation> show(const std::vector<Edge>& cycle);
  // One of those that are made without knowing any.
  std::optional<Violation> show_any();

  // Decides whether a violation is definite: Violation::verdict and complete. Where it is, the cycle
  // becomes one that all executions have.
  void settle(Violation* violation);

  // No more cycles are to be shown.
  bool exhausted() const {
    return made_ >= kMostForCycles || made_ * uint64_t{in_.trace.events.size()} > kMostSteps;
  }

 private:
  static constexpr uint32_t kMostForCycles = 24;
  static constexpr uint64_t kMostSteps = 8'000'000;  // events, of all executions for cycles

  std::optional<std::vector<Step>> make(const ExecutionChoice& choice, std::vector<Edge> open);
  std::optional<Violation> analyse(const ExecutionChoice& choice);
  const CertainUnits& certain();
  bool settled_definite() const {
    return begins_definite_ || (forced_ && forced_->contradiction());
  }
  bool begins_definite();
  bool find_acyclic();
  // Of an execution with a cycle: that one, and the edges that lead back in the order of the units.
  struct Back {
    std::vector<Edge> cycle;
    std::vector<Edge> edges;
  };
  Answer acyclic_in(const ExecutionChoice& choice, const std::vector<Edge>& open, Back* back);
  bool find_acyclic_by_thread(int rounds);
  bool find_acyclic_by_end(int rounds);
  bool decide(const Edge& edge, ForcedUnits* guessed, std::vector<Edge>* open);
  uint32_t node_of(uint32_t e) const { return in_.by_event ? e : in_.units.of_event(e); }

  OrderedUnits in_;
  const AccessIndex& accesses_;
  const ThreadLists& lists_;
  const ValueReads* values_;
  bool direct_;
  std::optional<FullExecutions> executions_;
  uint32_t made_ = 0;
  size_t looked_at_ = 0;  // of the choices
  std::optional<CertainUnits> certain_;
  std::optional<ForcedUnits> forced_;
  bool begins_definite_ = false;
  bool acyclic_ = false;                   // an execution without a cycle was seen
  std::optional<std::vector<Step>> last_;  // an execution
};

}  // namespace tsomon
