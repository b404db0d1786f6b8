// Is an order of operations a linearization? From the definitions, without the search's code.
//
// Purpose     What stands behind every linearization that is reported: each returned operation is
//             in it once, a pending one at most once, no operation comes before one that had
//             returned before its call, and the sequential specification allows each in turn.
// Complexity  O(n log n). Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

// Empty when it is one, else what is wrong.
std::string refused(const History& history, const Part& part, const std::vector<uint32_t>& order);

}  // namespace tsomon::linearizability
