// Paths of a trace without branches (PTWRITE only): what follows each written value.
//
// Purpose     A value comes with the address of its PTWRITE (fup_on_ptw). What is executed next is
//             certain up to the next branch: a block of the path, whose accesses through the
//             written register are known. Between two such blocks the path has a gap.
// Threads     Values of a CPU are those of the thread that ran all the time in which the value may
//             have been written; others are counted as lost.
// Misses      Values without an address, and those whose code is not known: counted.
// Complexity  O(n log n). Memory: as Flow.
// Thread-safety: safe to call concurrently.
#pragma once

#include "decoders/pt/flow/flow.h"

namespace tsomon::pt {

Flow decode_ptwrites(const Input& input);

}  // namespace tsomon::pt
