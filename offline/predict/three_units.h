// Cycles of a unit and what two other threads do: no two of the three violate anything.
//
// Purpose     An access of the unit comes before one of a second thread, that one, or another of its
//             unit or later in its thread, before one of a third thread, and that one, or likewise
//             another, before a later access of the unit, each two in conflict.
// Bounds      Of the accesses to a cell those kNearest before and after in the trace are looked at,
//             of a thread those of a unit and of kBefore units and events before it, of a unit one
//             access to each cell; kMaxSteps from one to another, kMaxAsked cycles
//             that are asked about, kMaxNodes of their windows, kMaxAccesses of the trace. Beyond them cycles are missed, and
//             nothing is said: that is so for most of them.
// Misses      Cycles of four threads and more. Nothing is looked for where stores have a buffer.
// Errors      Throws WorkEnded. Thread-safety: none.
#pragma once

#include "offline/predict/atomicity.h"
#include "offline/predict/kept_witnesses.h"
#include "offline/predict/unit_accesses.h"

namespace tsomon::predict {

// Adds those whose last access ends no violation that is there already.
void three_unit_violations(Query& query, const AtomicityOptions& options, const UnitAccesses& units,
                           KeptWitnesses* kept, AtomicityResult* result);

}  // namespace tsomon::predict
