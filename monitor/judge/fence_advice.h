// Where fences are missing, in the words of reports.
//
// Source      tso/order/fences.h; the units are those of components that are violated or not decided.
// Purpose     One list for `tsomon check` and `tsomon run`: units with the same label that lack a
//             fence at the same source location are one entry.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/findings/reported_finding.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"

namespace tsomon {

// A unit with a store that may commit after it (tso/order/fences.h); one for all units with the
// same label that lack a fence at the same source location.
struct FenceAdvice {
  ThreadId thread = 0;
  uint32_t label = Interner::kNone;
  uint64_t first = 0;  // events of the input
  uint64_t last = 0;
  uint64_t after = 0;  // the store that a fence belongs after
  Event store;
  uint64_t units = 0;
};

inline constexpr size_t kMaxFenceAdvice = 16;

// Adds what an analysis says of a trace whose events are numbered by `index` (nullptr: as they
// stand), up to kMaxFenceAdvice entries in all.
void add_fence_advice(const Analysis& analysis, const EventBlock& events, const UnitTable& units,
                      const std::vector<uint64_t>* index, std::vector<FenceAdvice>* advice);

std::vector<ReportedFence> reported(const std::vector<FenceAdvice>& advice, const Symbols& symbols,
                                    const ReportNames& names);

}  // namespace tsomon
