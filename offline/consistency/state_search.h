// Looks for an execution with the values of a problem by trying the stores one after another.
//
// Source      Gibbons and Korach (SIAM J. Comput. 1997): for a fixed number of threads the states
//             that a run can be in are polynomially many.
// Purpose     For problems whose values say little, so that the decisions about the order
//             contradict each other late and again and again: here a state that has failed, that is
//             what each thread has done and what memory holds, is never tried twice.
// Complexity  O(states * threads * stores that can go on), at most max_states of them; memory:
//             8 * threads + 12 * locations bytes and some 60 a state that failed.
// Misses      Stores and initial values without a value: answers kUnknown.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/consistency/memory_order.h"
#include "tso/order/orientations.h"

namespace tsomon {

struct StateSearchResult {
  Answer answer = Answer::kUnknown;
  uint64_t states = 0;
  std::vector<uint32_t> execution;  // kYes: all operations as they take effect
};

// The order must be settled, and hold in every execution.
StateSearchResult search_states(const ValueProblem& problem, const MemoryOrder& order,
                                uint64_t max_states, uint64_t max_bytes);

}  // namespace tsomon
