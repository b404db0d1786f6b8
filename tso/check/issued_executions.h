// The executions of a small trace that return its recorded values, by the order of their issues.
//
// Source      Theory sections 2, 5.3 and 6.
// Purpose     SC-serializability asks in which order accesses were issued, and values say what an
//             execution under TSO did: whether an order of the issues is that of an execution with
//             these values is decided here, by running all of them. It replaces what a search over pairs
//             of accesses leaves as possible.
// Exact       Within the bounds; where locks do not exclude, kYes is for the witness checker to accept.
// Bounds      kMaxNodes events, max_states states; beyond them answers are kUnknown.
// Complexity  O(states x events). Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/execution.h"
#include "tso/order/orientations.h"
#include "tso/order/reachability.h"
#include "tso/order/values.h"

namespace tsomon {

struct IssuedExecutions {
  static constexpr size_t kMaxNodes = 64;

  Answer cyclic = Answer::kUnknown;   // some has a cycle of units, one of `among` on it
  Answer acyclic = Answer::kUnknown;  // some has no such cycle
  std::vector<Step> witness;          // of the former: all events of the trace
};

// `issues`: of MemoryModel::kSc; `order`: what is certain of it, values included. `among`: sorted.
// `exclusion`: locks exclude, as the witness checker has it.
IssuedExecutions issued_executions(const Relation& issues, const UnitTable& units,
                                   const RecordedValues& values, const Reachability& order,
                                   const std::vector<UnitId>& among, bool exclusion,
                                   uint64_t max_states);

}  // namespace tsomon
