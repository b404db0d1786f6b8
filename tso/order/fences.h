// Which units end fenced, and where the others lack a fence.
//
// Source      Theory section 6 (transaction-fenced traces).
// Purpose     A unit ends fenced when its stores have certainly committed before its thread does
//             anything else: after its last store comes a fence, a locked operation or what else
//             drains the store buffer, in the unit or as the next event of the thread. A load that
//             is a unit of its own needs none; a store needs one right after it. All events of a
//             fenced unit come before all later events of their thread.
// Private     Accesses to memory that no other thread accesses order nothing between threads; they
//             are left out: such a store needs no fence, such a load may come before one.
// Misses      That a system call or a context switch has drained the buffer.
// Complexity  O(n) to build, O(1) a query.
// Thread-safety: immutable after construction; keeps nothing of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/relation.h"
#include "tso/model/units.h"
#include "tso/order/event_graph.h"

namespace tsomon {

class Fences {
 public:
  Fences(const Relation& relation, const AccessIndex& accesses, const UnitTable& units);

  // The last store of the unit that may still be in the store buffer when the thread goes on: a
  // fence belongs after it. Relation::kNever: the unit ends fenced.
  uint32_t missing_after(UnitId unit) const { return missing_after_[unit]; }
  bool fenced(UnitId unit) const { return missing_after_[unit] == Relation::kNever; }
  // An earlier unit, not fenced, whose store a load of this one may be forwarded from;
  // UnitTable::kNone: there is none.
  UnitId forwarded_from(UnitId unit) const { return forwarded_from_[unit]; }

  // A node of the event graph that is no private load or store.
  bool relevant(uint32_t e) const { return relevant_[e]; }

 private:
  std::vector<uint32_t> missing_after_;  // by unit
  std::vector<UnitId> forwarded_from_;   // by unit
  std::vector<bool> relevant_;           // by event
};

}  // namespace tsomon
