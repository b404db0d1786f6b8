// Whether this machine reports what its hardware breakpoints see.
//
// Purpose     Some virtual machines accept a breakpoint and never report it: a
//             watched location then looks as if nobody accessed it. Before a process
//             is watched, locations of this process are, with events of the same
//             kind, as many at once and of the same sizes, through the same rings;
//             they are loaded and stored on each processor that this process may
//             use.
// Misses      Processors that this process may not run on. That the address in the other process is
//             the one that is meant.
// Errors      kEnvironment with the remedy: the first watch point that is not reported, or what
//             PerfRings cannot open.
// Cost        Some microseconds for each processor and watch point, and the rings.
// Thread-safety: one call at a time; the calling thread is moved from processor to processor.
#pragma once

#include <vector>

#include "monitor/attach/plan.h"
#include "tso/support/result.h"

namespace tsomon::attach {

// True at once for none.
Result<bool> prove_watch_points(const std::vector<WatchPoint>& watch);

}  // namespace tsomon::attach
