// The execution of a class without the attempts of waiting loops that came to nothing.
//
// Source      Theory, "Waiting inside of a unit" (docs/theory.md); tso/model/idle_iterations.h.
// Purpose     Units that begin before they have a lock contain failed attempts to get it, which are no events. The runtime
//             finds iterations without effect only where the thread's state is the same again.
// Result      Idle loads are calls, which no property looks at; idle locked operations are fences. Events keep their numbers.
// Complexity  O(n log n) for n events, and `place` once for each instruction.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

// `units`: units_of(). `place`: the text of an instruction's place; equal texts, one place.
Graph without_idle_attempts(const Graph& graph, const std::vector<uint32_t>& units,
                            const std::function<std::string(uint64_t)>& place);

}  // namespace tsomon::explore
