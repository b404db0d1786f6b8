// What rules a violation out in all executions of its slice of the trace.
//
// Purpose     Root causes are those of one order of the conflicting accesses.
//             Where the trace leaves the order of some of them open, another
//             execution may be violated in another way, and a repair has to rule
//             out each.
// Method      The conflicts inside of the circle whose order is open are oriented in all ways, at
//             most kMaxOpen of them.
// Complexity  2^open times that of causes_of(). Thread-safety: a pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "offline/explain/circle.h"
#include "offline/explain/violation.h"

namespace tsomon::explain {

inline constexpr size_t kMaxOpen = 4;

// Of each violated execution its causes, in events and units of the whole trace. Nothing: more
// orders are open, or none is, or the order of the slice contradicts itself.
std::optional<std::vector<CircleCauses>> causes_in_executions(const ViolatedSlice& slice,
                                                              const UnitTable& units,
                                                              const OrderOptions& order,
                                                              const CodeMap& code,
                                                              const RootCauseBounds& bounds);

}  // namespace tsomon::explain
