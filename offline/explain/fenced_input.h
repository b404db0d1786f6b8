// A whole input with fences in it, and whether it is violated then.
//
// Purpose     Whoever says that fences are enough (`explain`, the hints of `check`) has asked the exact
//             checker about the whole input with them: other circles may lead through what the one
//             that was found does not.
// Places      A fence may matter behind every store whose thread goes on before its buffer is
//             empty, whatever the violation is.
// Complexity  Construction: an analysis of the input. with_fences(): another one.
// Thread-safety: const access is safe. The trace must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "offline/explain/changed_trace.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"

namespace tsomon::explain {

class FencedInput {
 public:
  FencedInput(const Trace& trace, const AnalysisOptions& options);

  // It is violated as it stands, and an analysis says so.
  bool can_ask() const { return before_ == Left::kSome || before_ == Left::kAlways; }
  // Of one analysis, as WorkMeter counts.
  uint64_t work() const { return work_; }
  const std::vector<uint32_t>& late_stores() const { return late_stores_; }
  // `stores`: in any order.
  Left with_fences_after(std::vector<uint32_t> stores, FenceTime time) const;
  // Wherever a late store is at a place (code.h: location_of) that is wanted.
  Left with_fences_at(const std::function<bool(const std::string& location)>& wanted,
                      FenceTime time) const;

 private:
  void find_late_stores();

  Question question_;
  Left before_ = Left::kUnknown;
  uint64_t work_ = 0;
  std::vector<uint32_t> late_stores_;
};

}  // namespace tsomon::explain
