// A circle of units in one execution of a trace: what its root causes are, in events and in code.
//
// Complexity  As find_root_causes(); conflicts are bounded by kMaxConflicts.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "offline/explain/code.h"
#include "offline/explain/ordered_trace.h"
#include "offline/explain/root_causes.h"

namespace tsomon::explain {

// A block where it occurs: these events of a unit, and those between them.
struct Occurrence {
  Segment block;
  UnitId unit = 0;
  uint32_t first = 0;  // events
  uint32_t last = 0;
};

struct CircleCauses {
  // Sets of blocks of code (code.h), the minimal ones, and where each was found.
  std::map<SegmentSet, std::vector<Occurrence>> sets;
  uint64_t without_code = 0;  // sets of segments that are no blocks of code
  bool complete = true;
};

inline constexpr uint64_t kMaxConflicts = 1'000'000;

// `events`: by unit of the trace (events_of_units).
CircleCauses causes_of(const OrderedTrace& trace, const std::vector<UnitId>& circle,
                       const std::vector<std::vector<uint32_t>>& events, const CodeMap& code,
                       const RootCauseBounds& bounds = {});

}  // namespace tsomon::explain
