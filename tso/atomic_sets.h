// Atomic-set serializability, over a whole trace.
//
// Source      Theory section 7 (Sumner, Hammer, Dolby: Marathon, RV 2011).
// Purpose     One conflict graph for every declared atomic set; a set whose graph has a cycle is
//             violated. An access belongs to the outermost enclosing unit that is declared on the
//             set, or to a unit of its own. Without declared sets, one set holds every location and
//             every unit is declared on it.
// Order       That of the events: the property does not know store buffers. Accesses whose
//             intervals overlap make the answer incomplete.
// Complexity  O(n * sets * overlapping ranges).
// Thread-safety: a pure function of its argument.
#pragma once

#include "tso/analysis.h"
#include "tso/trace.h"

namespace tsomon {

// The verdict is kClean, kDefinite or kInconclusive; findings have a cycle and, its units being
// shown in the order of the trace, no witness with late commits.
Analysis analyse_atomic_sets(const Trace& trace);

}  // namespace tsomon
