// Runs the operations of a value problem one by one in an order that the closed order allows.
//
// Purpose     The other half of the consistency check: what inference leaves open is tried out.
//             Loads take effect as soon as they see their value, stores when nobody still has to
//             read what they overwrite, the one that has waited longest first. When nothing can go
//             on, the stuck operations name the decision that has to be taken; when the order has
//             changed, only the steps that it does not allow any more are run again.
// Method      Each thread has a chain of operations that order like loads and one of those that
//             order like stores; both take effect in their order. What has run is one place per
//             chain, and an operation is ready when its clock is covered by these places.
// Complexity  O(threads) a step, forward and back. Memory: 16 bytes an operation.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "offline/consistency/memory_order.h"

namespace tsomon {

class Schedule {
 public:
  // Both must outlive the schedule.
  Schedule(const ValueProblem& problem, const MemoryOrder& order);

  // Goes on until all operations have run (true), or nothing can.
  bool run();

  // The decision that a stuck schedule needs, one of:
  struct Stuck {
    // a load that does not see its value, with several stores to choose from;
    uint32_t load = Operation::kNone;
    // or two stores to one location, of which `first` was run and `second` may not overwrite it.
    uint32_t first = Operation::kNone;
    uint32_t second = Operation::kNone;
  };
  Stuck stuck() const;

  // The order has got what came after `mark`, and has lost only what came after it before: takes
  // back the steps from the first on that this does not allow.
  void follow(const MemoryOrder::Mark& mark);

  // The operations that have run, as they took effect.
  const std::vector<uint32_t>& steps() const { return steps_; }

  // Step by step, for other strategies. Loads and fences may always run as soon as they can, when
  // the values of all stores are known: nothing else gets worse by it.
  void run_loads();
  // Stores and locked operations that can run now, the one that has waited longest first.
  std::vector<uint32_t> choices() const;
  void perform(uint32_t operation);
  void take_back(size_t count);  // until `count` steps are left
  // What the future depends on, when the values of all stores are known. Schedules that have come
  // to the same state can go on in the same ways.
  void append_state(std::vector<uint32_t>* state) const;

 private:
  struct Ready {
    uint32_t operation;
    uint32_t since;  // the number of steps after which it was
  };
  struct Assumption {
    uint64_t value;
    uint32_t step;
  };

  bool has_run(uint32_t operation) const;
  // What the operation would read now.
  uint32_t visible(uint32_t operation) const;
  std::optional<uint64_t> value_of(uint32_t store) const;
  bool may_read(uint32_t operation) const;
  bool may_write(uint32_t operation) const;
  bool still_read(uint32_t store, uint32_t by_other_than) const;
  bool may_run(uint32_t operation) const { return may_read(operation) && may_write(operation); }
  bool step_from(std::vector<Ready>* list);
  void advance(size_t chain);
  void wait_or_ready(size_t chain, size_t from);
  uint32_t ready_since(uint32_t operation) const;
  void find_ready();
  uint32_t first_refused(const MemoryOrder::Mark& mark) const;

  const ValueProblem& problem_;
  const MemoryOrder& order_;
  // By chain, two a thread as in the clocks.
  std::vector<std::vector<uint32_t>> chains_;
  std::vector<uint32_t> next_;                  // index into the chain
  std::vector<uint32_t> run_;                   // 1 more than the position of the last that has run
  std::vector<std::vector<uint32_t>> waiting_;  // chains whose next operation waits for this one

  std::vector<uint32_t> memory_;      // store, by location
  std::vector<uint32_t> overwriter_;  // by store or initial value
  std::vector<uint32_t> seen_;        // what an operation that has run has read or overwritten
  std::vector<uint32_t> place_;       // in steps_, of what has run
  std::vector<uint32_t> steps_;
  std::unordered_map<uint32_t, Assumption> assumed_;  // values of stores that have none
  std::vector<Ready> loads_;                          // loads, locked operations and fences
  std::vector<Ready> stores_;
};

// Whether the operations in this order are an execution with the values of the problem; decided
// from the definitions, by simulating memory and store buffers.
bool is_execution(const ValueProblem& problem, MemoryModel model,
                  const std::vector<uint32_t>& order);

}  // namespace tsomon
