// Cancelled units: failed attempts, whose accesses are events of their own.
//
// Purpose     An optimistic section (a seqlock's reader, a loop around a compare-and-swap, a double
//             check) begins a unit and finds at its end that it has seen a mixture. What it saw is
//             thrown away, so it was never meant to be atomic: it ends with kUnitCancel.
// Meaning     The trace is judged as if the begin and the cancel were not there. So the accesses
//             belong to the unit around the cancelled one, if there is one (to the outermost one
//             that is declared on the set, of an atomic set), else each is a unit of its own, and
//             a wait inside splits only what is around. Cancelling ends the innermost open unit.
// How         Begins of cancelled units become kCancelledBegin, which like kUnitCancel no checker
//             looks at. Nothing is taken out: events keep their numbers.
// Soundness   Taking a unit apart removes violations and adds none: a cycle of the smaller nodes
//             is a cycle of the larger ones, since no cycle lies inside one unit (the events
//             alone have none).
// Complexity  O(n). Thread-safety: pure.
//
// Of streams: monitor/events/held_units.h.
#pragma once

#include "tso/model/trace.h"

namespace tsomon {

// Kinds of events besides those of tso/model/event.h.
inline constexpr auto kUnitCancel =
    static_cast<EventKind>(kEventKinds);  // in the place of kUnitEnd
inline constexpr auto kCancelledBegin = static_cast<EventKind>(kEventKinds + 1);
inline constexpr int kKindsWithCancels = kEventKinds + 2;

// `events` are whole. Again: nothing changes. `may_cancel`: the input says that units may be
// cancelled; one that is open at its end may have been about to be, and is none either.
void resolve_cancelled_units(EventBlock& events, bool may_cancel);

}  // namespace tsomon
