// Events of a lock whose order is known better than by their intervals.
//
// Purpose     A lock that is handed over is a message between threads: acquisitions and releases of
//             one lock have an order that is certain, also where clocks of different processors
//             agree less closely than critical sections follow one another. An acquisition or
//             release with a value that it writes, a number that no reader looks at, is one whose
//             order among events of its lock is that of their `lo`. Its interval says only how it
//             lies to what is not of the lock. Decoders of captures give such values
//             (decoders/capture/clock_margin.h).
// Soundness   Whoever makes such events takes care that `lo` grows from one holder to the next.
//             What was done before a release has then taken effect for those who acquire the lock
//             later, so an earlier event of the lock is directed to a later one, a release, too.
// Thread-safety: pure functions.
#pragma once

#include "tso/model/event.h"

namespace tsomon {

inline bool is_lock_by_start(const Event& event) {
  return event.has_write_value != 0 && is(event, kinds::kLocks);
}

}  // namespace tsomon
