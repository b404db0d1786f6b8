// Whether one execution violates a property.
//
// Purpose     An explored execution has no open order: every load's source and the order of all
//             writes are known. So its conflict graph is, and every answer is exact.
// Robustness  The execution is one of SC: its program order, reads-from, coherence and from-read
//             have no cycle (theory section 6).
// Serializability
//             The units, every event outside of all a unit of its own, in the conflict graph of the
//             execution: program order but for a store before a load of another cell and a
//             forwarded load before a load of another cell (under SC all of it), and the conflicts
//             (sections 2 and 3).
// Complexity  O(n^2) for n events.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/explore/execution_graph.h"

namespace tsomon::explore {

bool is_robust(const Graph& graph);

// The unit of every event; equal numbers, one unit. Of nested units the outermost.
std::vector<uint32_t> units_of(const Graph& graph, const std::vector<Mark>& marks);

struct UnitEdge {
  uint32_t from = 0;  // events
  uint32_t to = 0;
  bool conflict = false;  // else program order
};
// A shortest cycle of units by the edges that leave them; nothing: serializable.
std::optional<std::vector<UnitEdge>> unit_cycle(const Graph& graph, Model model,
                                                const std::vector<uint32_t>& units);

// Memory that some execution of the class uses after it was freed: an access of another thread that
// does not have to come before the step after which it is freed.
struct EarlyFree {
  uint32_t access = 0;  // event
  std::vector<Choice> schedule;
};
std::optional<EarlyFree> early_free(const Graph& graph, Model model,
                                    const std::vector<Mark>& marks);

}  // namespace tsomon::explore
