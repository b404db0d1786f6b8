// What repairs are looked for: the inputs and their violations.
//
// Purpose     What the search for blocks (repairs.cpp) and for fences (fence_repairs.h) have in common.
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/explain/circle.h"
#include "offline/explain/ordered_trace.h"
#include "offline/explain/violation.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"
#include "tso/order/event_ranges.h"

namespace tsomon::explain {

struct ExplainedViolation {
  uint32_t input = 0;
  std::vector<UnitId> units;  // empty: a cycle of events
  std::vector<EventRange> members;
  CircleCauses causes;
  std::optional<ViolatedSlice> slice;
};

struct ExplainedTrace {
  const Trace* trace = nullptr;
  std::optional<OrderedTrace> ordered;
  std::vector<std::vector<uint32_t>> unit_events;
};

}  // namespace tsomon::explain
