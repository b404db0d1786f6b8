// What would have ruled violations out: blocks of code that are atomic, and fences.
//
// Source      root_causes.h, fence_repairs.h; theory sections 3 and 6.
// Purpose     From traces with violations to repairs that rule out all of them, the best first:
//             those that would forbid the fewest of the passing traces; of equal ones fences (the
//             cheapest first), then few and small blocks. What was refuted comes last.
// Violations  A circle of units of one trace is one violation, whatever else the trace holds.
// Verified    A repair was applied, and the exact checker was asked. Fences: to the whole inputs (where
//             these are too large to be judged for each place, sets are looked for around the violations,
//             and those that are found are asked of the whole). Blocks, to the traces around each violation: yes, if in every execution that is left some
//             block is interrupted; no, if violated executions certainly stay; nothing, where some
//             executions have the blocks uninterrupted and may or may not be violated. Where no set that single
//             orders ask for is verified, the whole methods are made smaller (smallest_blocks.h).
//             Where neither is verified for all, blocks for the violations that whole methods are enough for stand together with
//             fences for the others, asked of the traces around these.
// Misses      Both together for one violation.
// Complexity  Bounded by RootCauseBounds, FenceBounds and the meter of the thread. When that ends,
//             what has been found until then stays, and complete is false.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "offline/explain/circle.h"
#include "offline/explain/code.h"
#include "offline/explain/lock_advice.h"
#include "tso/check/analysis.h"
#include "tso/model/outcome.h"
#include "tso/model/trace.h"

namespace tsomon::explain {

struct ViolatingTrace {
  const Trace* trace = nullptr;
  std::vector<std::vector<CycleEdge>> cycles;  // that were found in it, in its events
  PlaceOf place_of;
};

struct PassingTrace {
  const Trace* trace = nullptr;
  PlaceOf place_of;
};

struct FencePlace {
  std::string location;
  uint32_t input = 0;  // where it was first seen
  uint32_t after = 0;  // the store
  uint64_t times = 0;  // that it ran in all violating traces
};

struct BlockPlace {
  uint32_t input = 0;
  Occurrence found;
  std::string method;
  std::string first_location;  // of the block
  std::string last_location;
  BlockCode code;
  std::optional<LockAdvice> lock;
};

// Fences or blocks; both where neither alone is enough for all violations.
struct Repair {
  std::vector<FencePlace> fences;
  std::vector<BlockPlace> blocks;
  SegmentSet code;
  uint32_t rank = 1;
  uint64_t forbids = 0;
  std::optional<bool> verified;
  // Of fences: they help only if what follows them takes place when it did without them.
  bool assumes_times = false;
};

// The smallest part of a trace that shows a violation.
struct SmallestTrace {
  uint32_t input = 0;
  std::vector<uint32_t> events;  // without those that begin and end units
  bool complete = true;          // false: it may not be the smallest
};

struct Repairs {
  std::vector<SmallestTrace> smallest;  // with RepairOptions::minimize, of each violation
  std::vector<Repair> repairs;          // the best first
  uint64_t violations = 0;              // circles
  Notes notes;                          // what is missing
};

struct RepairOptions {
  AnalysisOptions analysis;
  bool blocks = true;
  bool fences = true;
  bool minimize = false;
  size_t max_repairs = 32;
  RootCauseBounds causes;
};

Repairs find_repairs(const std::vector<ViolatingTrace>& violating,
                     const std::vector<PassingTrace>& passing, const RepairOptions& options);

}  // namespace tsomon::explain
