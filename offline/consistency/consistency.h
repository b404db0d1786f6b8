// Can the values of a trace be explained without knowing how its threads were ordered?
//
// Purpose     Tells a run that was sequentially consistent from one that shows TSO's relaxation,
//             and a damaged recording, or a machine that is not TSO, from both.
// Source      Theory sections 5.3 and 8; Gibbons and Korach (SIAM J. Comput. 1997): NP-complete in
//             general; the method is inference (offline/consistency/memory_order.h), then decisions
//             with backtracking only where it leaves the run stuck
//             (offline/consistency/schedule.h); when half of them are used up, a search through the
//             states of a run (offline/consistency/state_search.h).
// Verdicts    kSc: some SC execution has these values. kTso: none has, some TSO execution has.
//             kInconsistent: no execution of the models asked has. kInconclusive: a bound was hit,
//             events were lost, or values had to be left out and an execution was found.
//             With the model SC alone there is no kTso, with TSO alone no kSc.
// Evidence    A positive verdict is an execution, replayed from the definitions before it is
//             returned. A negative one names operations whose order contradicts itself, unless
//             decisions were needed to find out.
// Unknown     values of stores and initial values may be any, the same for all that read them.
// Bounds      Decisions, of which one stands for ten states that are tried, and memory.
// Complexity  O(n * threads) rounds as long as no decision is needed; exponential in the decisions
//             in the worst case.
// Misses      Time stamps are not used. See offline/consistency/value_problem.h for what is left
//             out.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offline/consistency/value_problem.h"
#include "tso/model/relation.h"
#include "tso/order/execution.h"
#include "tso/support/result.h"

namespace tsomon {

enum class ConsistencyVerdict : uint8_t { kSc, kTso, kInconsistent, kInconclusive };

enum class ConsistencyModel : uint8_t { kSc, kTso, kBoth };

struct ConsistencyOptions {
  ConsistencyModel model = ConsistencyModel::kBoth;
  bool fenced_release = false;
  std::vector<InitialValue> final_values;  // of memory, when everything has committed
  uint64_t max_decisions = 20'000;         // per model
  uint64_t max_bytes = uint64_t{2} << 30;
};

struct ConsistencyReport {
  ConsistencyVerdict verdict = ConsistencyVerdict::kInconclusive;
  bool complete = true;  // false: the verdict could be another with more time, memory or events
  uint64_t operations = 0;
  uint64_t decisions = 0;
  std::vector<Step> witness;  // of the verdicts kSc and kTso: issues and commits
  // Of the strongest model that fails: events each of which would have to come before the next,
  // and the last before the first, final values left out; one alone cannot have read its value. May
  // be empty.
  std::vector<uint32_t> contradiction;
  std::vector<std::string> notes;
};

// An error when forks and joins contradict each other.
Result<ConsistencyReport> check_consistency(const Trace& trace, const ConsistencyOptions& options);

}  // namespace tsomon
