// Sets of fences that rule out all violations of all inputs.
//
// Source      fence_sets.h.
// Purpose     Asks the whole inputs (fenced_input.h). Where these are too large to be judged for each place, sets are
//             looked for around the violations, and those that are found are asked of the whole.
// Complexity  Bounded by FenceBounds and the meter of the thread. When that ends (WorkEnded), the sets that are in
//             `result` stay.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <vector>

#include "offline/explain/explained.h"
#include "offline/explain/repairs.h"

namespace tsomon::explain {

void find_fence_repairs(const std::vector<ExplainedTrace>& inputs,
                        const std::vector<const ExplainedViolation*>& violations,
                        const RepairOptions& options, Repairs* result);
// Looks at these violations alone, whatever else is in the inputs.
void find_fences_around(const std::vector<ExplainedTrace>& inputs,
                        const std::vector<const ExplainedViolation*>& violations,
                        const RepairOptions& options, Repairs* result);

}  // namespace tsomon::explain
