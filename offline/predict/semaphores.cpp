#include "offline/predict/semaphores.h"

#include <map>
#include <utility>

#include "tso/support/work.h"

namespace tsomon::predict {

int64_t count_of(const Trace& trace, const Event& event) {
  if (event.has_write_value != 0) {
    return static_cast<int64_t>(trace.write_value(event).value_or(0));
  }
  return event.has_extras() ? 0 : event.span_or_extra;
}

SemaphoreTable::SemaphoreTable(const Trace& trace) {
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> present;
  const auto begin = [&](const Event& event) {
    present[{event.address, event.size}] = static_cast<uint32_t>(semaphores_.size());
    return &semaphores_.emplace_back();
  };
  constexpr uint32_t kKinds =
      kind_mask(EventKind::kPost) | kind_mask(EventKind::kTake) | kind_mask(EventKind::kCount);
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!is(event, kKinds)) {
      continue;
    }
    spend(4);
    if (event.kind() == EventKind::kCount) {
      Semaphore* const made = begin(event);
      made->initial = count_of(trace, event);
      made->begin = i;
    } else {
      const auto found = present.find({event.address, event.size});
      Semaphore* const mine = found != present.end() ? &semaphores_[found->second] : begin(event);
      mine->steps.push_back({i, event.kind() == EventKind::kTake});
    }
    of_event_.try_emplace(i, present[{event.address, event.size}]);
  }
  for (Semaphore& semaphore : semaphores_) {
    int64_t count = semaphore.initial;
    for (const Semaphore::Step& step : semaphore.steps) {
      count += step.takes ? -1 : 1;
      semaphore.counted = semaphore.counted && count >= 0;
    }
    spend(semaphore.steps.size());
  }
}

}  // namespace tsomon::predict
