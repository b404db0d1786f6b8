// Whether the recorded values can be those of an execution that a witness is part of.
//
// Purpose     A component of a trace is searched by itself, and by orders of pairs of events. Of what
//             is found the witness may let an event find what it cannot have found: another value was
//             stored there last, and no store of the recorded one can have come in between.
//             Then the witness shows nothing.
// Misses      Why a store that may come in between cannot: true means that nothing is known against
//             the witness. Accesses to the same bytes with different sizes, values that are not known,
//             locations that have a name and no bytes.
// Complexity  O(events of the witness) for each store to what it reads.
// Errors      Throws WorkEnded.
// Thread-safety: a pure function.
#pragma once

#include "tso/check/explanation.h"
#include "tso/order/values.h"

namespace tsomon {

bool values_allow(const AnalysedTrace& in, const AccessIndex& accesses,
                  const RecordedValues& values, const Violation& found);

}  // namespace tsomon
