#include "tso/order/event_ranges.h"

#include <algorithm>
#include <utility>

namespace tsomon {

EventRanges::EventRanges(std::vector<EventRange> ranges) : ranges_(std::move(ranges)) {
  const auto place = [](const EventRange& range) { return std::pair(range.thread, range.first); };
  std::sort(ranges_.begin(), ranges_.end(),
            [&](const EventRange& a, const EventRange& b) { return place(a) < place(b); });
  for (size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].thread == ranges_[i - 1].thread) {
      ranges_[i].last = std::max(ranges_[i].last, ranges_[i - 1].last);
    }
  }
}

bool EventRanges::contains(const Trace& trace, uint32_t e) const {
  const ThreadId thread = trace.events[e].thread;
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(thread, e),
                       [](const std::pair<ThreadId, uint32_t>& at, const EventRange& range) {
                         return at < std::pair(range.thread, range.first);
                       });
  return after != ranges_.begin() && (after - 1)->thread == thread && e <= (after - 1)->last;
}

}  // namespace tsomon
