// Atomic-set serializability, over a whole trace.
//
// Source      Theory section 7 (Sumner, Hammer, Dolby: Marathon, RV 2011).
// Purpose     One conflict graph for every atomic set; a set whose graph has a cycle is violated.
//             An access belongs to the outermost enclosing unit that is declared on the set, or to
//             a unit of its own. Two conflict by the bytes that both access and that the set has.
// Sets        Declared ones (Symbols::sets); without any, one set holds every location and every
//             unit is declared on it. Or objects: the bytes from a kAllocate event to the kFree of
//             the same address, or to the next kAllocate on any of them, are a set of their own,
//             and every unit is declared on every object, whatever sets it names. What lies in no
//             object belongs to no set then.
// Order       That of the events: the property does not know store buffers. With
//             TraceOrder::kThread every interval counts as open. Conflicting accesses whose
//             intervals overlap may have come in either order, unless program order, locks, fork
//             and join, and recorded values decide it (`refine`). What overlaps the beginning or
//             the end of its object may belong to another one. kDefinite needs a cycle of certain
//             orders. kPossible is a cycle in a sequence that agrees with all of them and else
//             follows the starts of the intervals, or one of two units by accesses whose order is
//             open. Without one the answer is incomplete, unless no unit accesses the set more than
//             once: then there is no cycle in whatever order.
// Complexity  O(n * (sets + overlapping ranges)), with objects O(n * log objects), and what
//             shortest_cycle() costs; where intervals overlap, what refine() costs three times.
// Misses      Open cycles of more than two units, in other sequences than that one. Values that
//             leave more than one answer: kPossible then does not mean that an execution with all
//             recorded values was found. A read of the memory of an object after its end is in no
//             set.
// Thread-safety: a pure function of its arguments.
#pragma once

#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon {

enum class SetChoice : uint8_t {
  kAuto,      // declared sets if there are any, else objects if there are any, else one set of all
  kDeclared,  // declared sets, else one set of all
  kObjects,
};

// What is said when objects are asked for and there are none.
inline constexpr const char* kNoObjects =
    "no allocation was recorded: there are no objects whose accesses could be judged "
    "(TSOMON_OPTIONS=objects=SIZE records them)";

struct AtomicSetOptions {
  SetChoice sets = SetChoice::kAuto;
  bool refine = true;  // look at overlapping intervals again
  bool values = true;  // ... and at values
  RelationOptions relation;
  uint64_t max_undirected = 20'000'000;  // when looking again; past it less is decided
  // Only cycles of accesses in this part of the trace, by their positions; what is around it tells
  // of their order.
  uint32_t first = 0;
  uint32_t last = UINT32_MAX;
};

// The verdict is kClean, kPossible, kDefinite or kInconclusive. The witness of a finding has the
// accesses of its cycle, no store of which commits late, and has been checked
// (tso/check/set_witness.h); it is empty where they are very many.
Analysis analyse_atomic_sets(const Trace& trace, const AtomicSetOptions& options = {});

}  // namespace tsomon
