// An order of the units that follows the steps, without going back.
//
// Purpose     Answers most questions for an execution without a cycle of units before anything is
//             searched: units are put into order one by one, each with all its open edges leading
//             to those that are not in order yet, and with what that implies for the steps. Of the
//             units that may come next, the first by priority that the steps allow is taken.
// Misses      Orders that a unit taken earlier excludes: nothing found says nothing.
// Complexity  Every open edge once, and as often again as a unit was refused.
// Thread-safety: none; the model's order is left as it was found.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/check/execution_model.h"
#include "tso/order/orientations.h"

namespace tsomon {

// The place of each unit; `class_of`: the unit of each event of the problem.
std::optional<std::vector<uint32_t>> order_greedily(const OrientationProblem& problem,
                                                    const GrowingOrder& units,
                                                    const std::vector<uint32_t>& class_of,
                                                    const std::vector<uint32_t>& priority,
                                                    ExecutionModel* model);

}  // namespace tsomon
