// A finding from a cycle that the detector has reported.
//
// Purpose     For cycles whose events are no longer at hand: all that is known is what the detector
//             remembers of them. The finding has a witness where that is enough for one that holds
//             by itself; what orders its events inside of a thread may have left the history.
// Complexity  O(steps^2).
// Thread-safety: a pure function of its arguments.
#pragma once

#include "monitor/judge/check.h"
#include "online/detector/detector.h"

namespace tsomon {

CheckFinding finding_of_cycle(const DetectedCycle& cycle, const CheckOptions& options);

}  // namespace tsomon
