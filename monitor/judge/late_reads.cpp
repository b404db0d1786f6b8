#include "monitor/judge/late_reads.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tsomon {
namespace {

constexpr size_t kMost = 3;

// With its value, or as late as it may have read another store.
void take_way(EventBlock* events, const LateRead& read, bool in_slice) {
  Event& event = events->events[read.event];
  const int64_t hi = events->hi(event);
  const auto written = events->write_value(event);
  event.has_hi = event.has_read_value = event.has_write_value = 0;
  event.span_or_extra = 0;
  if (in_slice) {
    events->complete(event, hi, read.value, written);
  } else {
    event.lo = std::max(event.lo, read.lo);
    events->complete(event, std::max(hi, event.lo), {}, written);
  }
}

void nothing_is_known(Analysis* analysis) {
  analysis->undecided_components += std::max<uint64_t>(analysis->violations(), 1);
  analysis->findings.clear();
  analysis->more = {};
  analysis->notes.missing("loads that may have read what came later");
}

}  // namespace

Result<Analysis> with_late_reads(Result<Analysis> found, const Trace& slice,
                                 const std::vector<LateRead>& reads,
                                 const std::function<Result<Analysis>(const Trace&)>& analyse) {
  if (!found || reads.empty() || found->violations() == 0 || found->all().definite > 0) {
    return found;
  }
  if (reads.size() > kMost) {
    nothing_is_known(&*found);
    return found;
  }
  const auto gravity = [](const Analysis& analysis) {
    return std::pair(analysis.violations() > 0           ? 2
                     : analysis.undecided_components > 0 ? 1
                                                         : 0,
                     analysis.undecided_components);
  };
  std::optional<Result<Analysis>> gravest;
  for (uint32_t way = 0; way < 1U << reads.size(); ++way) {
    Trace one = slice;
    for (size_t i = 0; i < reads.size(); ++i) {
      take_way(&one, reads[i], (way >> i & 1) == 0);
    }
    Result<Analysis> now = analyse(one);
    if (!now) {
      return found;
    }
    if (now->values_contradict) {
      continue;  // no execution goes this way
    }
    for (Violation& violation : now->findings) {
      violation.verdict = Verdict::kPossible;  // another way may have happened
    }
    now->more = {0, now->more.all()};
    if (!gravest || gravity(*now) > gravity(**gravest)) {
      gravest = std::move(now);
    }
  }
  return gravest ? std::move(*gravest) : std::move(found);
}

}  // namespace tsomon
