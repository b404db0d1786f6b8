// Loads that a thread repeats while it waits: a run of equal ones becomes three events.
//
// Purpose     A thread that spins makes millions of events which say nothing new. In a run of loads
//             by the same instruction, of the same bytes and with the same value, with nothing of
//             the thread between, there stay the first, the last, and one for all between, whose
//             interval is from the first of these to the last. Likewise of compare-exchanges that
//             fail again and again, each of which is a fence and a load. So a thread that waits
//             costs three events for each change of the value, and as many for each block.
// Soundness   The three stand for the run. Let r be a load of it, f the first and l the last, w and
//             w' stores of other threads, p and q events of its own before and after the run. In
//             every execution loads of one location read ever later stores of it, also those that
//             are forwarded from the thread's own buffer, and nothing lies between f and l. So
//               w before r  implies  w before l;       r before w'  implies  f before w';
//               p before r  implies  p before f;       r before q   implies  l before q,
//             and f before l. Inside a unit a cycle needs no more than f and l. Where r is a unit
//             of its own, p - r - q, p - r - w' and w - r - q have a way by f or l, and w - r - w'
//             has one by the middle event, put where r is; of two loads between on one cycle one
//             will do, by the same rules. So whatever execution the whole trace has, this one has
//             it with the middle event at the place of any one of the loads between, and it is
//             cyclic if the whole one is for some of these places, and only then: what is clean or
//             definite here is so in the whole trace. That holds for serializability, also under
//             sequential consistency and of atomic sets, and robustness. A load more or less
//             between equal ones changes no consistency of values either. For pairs: after the
//             first fence of the run the buffer is empty, so the others order nothing else.
// Precision   The other way round as well where no value is written twice: a store w is then on the
//             same side of all loads of the run. Where others write the same value again meanwhile
//             (A, B, A) what was clean or definite can become possible.
// Misses      Loads without a value: without it nothing says on which side of a
//             store the middle is. Groups of loads of several locations: in r1(x)
//             r1(y) r2(x) r2(y) ... the pair r2(x), r2(y) may order stores to x and
//             y which no event of the others orders. Read-modify-writes: they are
//             stores.
// Complexity  O(n). Thread-safety: pure.
#pragma once

#include "tso/model/trace.h"

namespace tsomon::capture {

// `block` is of one thread, with nothing missing between.
void merge_repeated_loads(EventBlock& block);

}  // namespace tsomon::capture
