// A finding from a cycle that the detector has reported.
//
// Purpose     For cycles whose events are no longer at hand: all that is known is what the detector
//             remembers of them. The finding has a witness where that is enough for one that holds
//             by itself; what orders its events inside of a thread may have left the history.
// Complexity  O(steps^2).
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "online/detector/detector.h"
#include "tso/model/finding.h"
#include "tso/model/property.h"
#include "tso/model/relation.h"

namespace tsomon {

Finding finding_of_cycle(const DetectedCycle& cycle, Property property,
                         const RelationOptions& relation);

// Whether the finding has an edge of the cycle's.
bool shows(const Finding& finding, const DetectedCycle& cycle);

// As kind_of() of the finding that it becomes, without looking for a witness. `names`: how many the trace has.
std::string kind_of(const DetectedCycle& cycle, size_t names);
// Its first event.
uint64_t begin_of(const DetectedCycle& cycle);

// By which the detector looks for violations of a property.
DetectorPolicy policy_of(Property property);

}  // namespace tsomon
