#include "tso/model/cancelled_units.h"

#include <cstddef>
#include <vector>

namespace tsomon {

void resolve_cancelled_units(EventBlock& events, bool may_cancel) {
  std::vector<std::vector<size_t>> open;  // begins, by thread
  for (size_t e = 0; e < events.events.size(); ++e) {
    const Event& event = events.events[e];
    constexpr uint32_t kBegins = kind_mask(EventKind::kUnitBegin) | kind_mask(kCancelledBegin);
    constexpr uint32_t kEnds = kind_mask(EventKind::kUnitEnd) | kind_mask(kUnitCancel);
    if (!is(event, kBegins | kEnds)) {
      continue;
    }
    if (event.thread >= open.size()) {
      open.resize(event.thread + 1);
    }
    std::vector<size_t>& mine = open[event.thread];
    if (is(event, kBegins)) {
      mine.push_back(e);
    } else if (!mine.empty()) {
      if (event.kind() == kUnitCancel) {
        events.events[mine.back()].set_kind(kCancelledBegin);
      }
      mine.pop_back();
    }
  }
  if (may_cancel) {
    for (const std::vector<size_t>& begins : open) {
      for (const size_t begin : begins) {
        events.events[begin].set_kind(kCancelledBegin);
      }
    }
  }
}

}  // namespace tsomon
