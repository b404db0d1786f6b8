// One violation of a trace, as repairs are asked about it.
//
// Purpose     Where it is, the slice of the trace that the exact checker looks at, and the stores
//             after which a fence could help.
// Thread-safety: const access is safe. The trace must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "offline/explain/changed_trace.h"
#include "offline/explain/ordered_trace.h"
#include "tso/check/analysis.h"

namespace tsomon::explain {

class ViolatedSlice {
 public:
  // `members`: the events of the violation's units, or of its cycle, by range. `labels`: of the
  // units, if each range is one. Other units count as single events then: the violation is the only
  // one.
  ViolatedSlice(const Trace& trace, const std::vector<EventRange>& members,
                const std::vector<uint32_t>& labels, const AnalysisOptions& options);

  // It is violated as it stands, so that it makes sense to ask what changes that.
  bool can_ask() const { return before_ == Left::kSome || before_ == Left::kAlways; }
  bool definite() const { return before_ == Left::kAlways; }

  // The slice as it stands.
  const Question& question() const { return question_; }
  // The event of the trace is one of the violation's.
  bool has(uint32_t e) const { return e < unit_of_.size() && unit_of_[e] != UnitTable::kNone; }

  // Stores of the trace whose commit may come after what their thread does next: since each thread
  // last emptied its buffer, until it last takes part.
  const std::vector<uint32_t>& late_stores() const { return late_stores_; }
  // The smallest part of the slice that is still violated: no single event can be left out. In
  // events of the trace, without what begins and ends units. At most max_questions are asked, after
  // which there may be smaller ones: *complete becomes false.
  std::vector<uint32_t> smallest(uint64_t max_questions, bool* complete) const;

  Left with_fences_after(std::vector<uint32_t> stores, FenceTime time) const;
  // `unit_of`: by event of the trace, as occurrences() gives it. Those outside of the violation's
  // units are none.
  Left with_blocks(uint32_t blocks, const std::vector<uint32_t>& unit_of) const;
  // Every execution interrupts one of the blocks; nothing: that was not decided.
  std::optional<bool> interrupts(uint32_t blocks, const std::vector<uint32_t>& unit_of) const;

 private:
  void find_late_stores(const std::vector<EventRange>& members);

  Question question_;
  std::vector<uint32_t> unit_of_;  // by event of the trace, the violation's
  Left before_ = Left::kUnknown;
  std::vector<uint32_t> late_stores_;
};

}  // namespace tsomon::explain
