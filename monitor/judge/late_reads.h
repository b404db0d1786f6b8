// What stands of an analysis of a slice with loads that may have read what came after it.
//
// Purpose     Where such loads have no values, executions seem to violate that no execution with the
//             recorded values continues. What is possible is so only if one of the ways says it
//             in which the loads may have come about (online/stream/late_read.h).
// Misses      More loads than three: then what is possible is not decided.
// Complexity  2^loads analyses.
// Thread-safety: pure functions, as far as `analyse` is one.
#pragma once

#include <functional>
#include <vector>

#include "online/stream/late_read.h"
#include "tso/check/analysis.h"
#include "tso/model/trace.h"
#include "tso/support/result.h"

namespace tsomon {

// What stands of `found`, the analysis of `slice` without the values of those loads.
Result<Analysis> with_late_reads(Result<Analysis> found, const Trace& slice,
                                 const std::vector<LateRead>& reads,
                                 const std::function<Result<Analysis>(const Trace&)>& analyse);

}  // namespace tsomon
