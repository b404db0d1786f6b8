// A trace as it would be with a repair, and whether its violation is still there.
//
// Purpose     A repair is applied to the trace and put to the exact checker. Fences:
//             events of their own. Blocks: the units of the trace are the blocks, so
//             that a trace in which every execution violates them could not have
//             happened.
// Fences      One takes its time, and delays what follows it. So nothing is concluded from when it
//             has ended, but that it has when something else drains the buffer: FenceTime::kOpen.
//             With kRecorded what follows it keeps its time: a fence has ended when the next event
//             of its thread has, and at once where stores have a single time instead of an
//             interval.
// No trace    A change may leave no execution at all, because of recorded values or of the order in
//             time: that removes the violation, too.
// Complexity  O(n) to change, and what the analysis costs. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/order/event_ranges.h"
#include "tso/order/orientations.h"

namespace tsomon::explain {

// A slice of a trace around a violation, and what the checker is asked about it.
struct Question {
  Trace trace;
  std::vector<uint32_t> origin;  // of each event, in the whole trace; kPut: it was put in
  AnalysisOptions options;
  static constexpr uint32_t kPut = 0xFFFFFFFFU;
};

inline constexpr uint32_t kAround = 2'000;  // events before and after a violation
inline constexpr uint32_t kNear = 200;      // ... where it is not decided with so many

// Events [first, last] of the trace with `around` on both sides.
Question cut_out(const Trace& trace, uint32_t first, uint32_t last, uint32_t around,
                 const AnalysisOptions& options);

enum class FenceTime : uint8_t { kOpen, kRecorded };

// With a fence after each of these events of the whole trace, ascending.
Question with_fences(const Question& question, const std::vector<uint32_t>& after, FenceTime time);
// With these units and no others: by event of the whole trace, UnitTable::kNone: in none. Each lies
// in one thread, with no other unit's events of that thread in between. `labels`: of each.
Question with_units(const Question& question, const std::vector<uint32_t>& labels,
                    const std::vector<uint32_t>& unit_of);

// Without these events: `keep` says for each event of the question whether it stays. What memory
// held is not known then.
Question with_only(const Question& question, const std::vector<bool>& keep);

// Violations are left in no execution, in some, in all; there is no execution; it was not decided.
enum class Left : uint8_t { kNothing, kSome, kAlways, kNoExecution, kUnknown };
Left violations_left(const Question& question);
// Whether the change removed them.
Answer removes(Left left);

}  // namespace tsomon::explain
