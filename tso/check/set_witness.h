// The witness checker of atomic sets: recomputes the cycle from the witness alone.
//
// Source      Theory section 7.
// Purpose     Replays a witness and recomputes from the definitions, by plain loops:
//              1. every event is an access that is issued once, in program order of its thread, and
//                 what is certainly over before another one begins comes before it;
//              2. every store commits at once;
//              3. the units of the accesses, ordered by the conflicts on bytes of the set, have a
//                 cycle.
// Complexity  O(w^2) for a witness of w events.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tso/model/set_bytes.h"
#include "tso/model/trace.h"
#include "tso/order/execution.h"

namespace tsomon {

// `unit_of` every event of the trace with regard to the set; `bytes` nullptr: all are in the set.
// Empty: the witness holds; else what is wrong with it.
std::string fault_of_set_witness(const Trace& trace, const std::vector<Step>& witness,
                                 const std::vector<uint32_t>& unit_of, const SetBytes* bytes);

}  // namespace tsomon
