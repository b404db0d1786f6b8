#include "offline/explain/fenced_input.h"

#include <algorithm>
#include <utility>

#include "offline/explain/code.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon::explain {

FencedInput::FencedInput(const Trace& trace, const AnalysisOptions& options) {
  if (trace.events.empty()) {
    return;
  }
  const auto last = static_cast<uint32_t>(trace.events.size() - 1);
  question_ = cut_out(trace, 0, last, 0, options);
  question_.options.only.clear();
  work_ = measured(WorkBounds(), [&] { before_ = violations_left(question_); }).work;
  find_late_stores();
}

void FencedInput::find_late_stores() {
  const auto& events = question_.trace.events;
  std::vector<uint32_t> latest;  // by thread: a store that nothing of it has followed yet
  for (uint32_t e = 0; e < events.size(); ++e) {
    spend(2);
    if (!is(events[e], kinds::kNodes)) {
      continue;
    }
    latest.resize(std::max<size_t>(latest.size(), events[e].thread + 1), kNone);
    const uint32_t store = std::exchange(latest[events[e].thread], kNone);
    if (store != kNone && !is(events[e], kinds::kDrains)) {
      late_stores_.push_back(store);
    }
    if (is(events[e], kinds::kStores)) {
      latest[events[e].thread] = e;
    }
  }
  // What comes last may still be in a buffer when another thread goes on.
  std::copy_if(latest.begin(), latest.end(), std::back_inserter(late_stores_),
               [](uint32_t store) { return store != kNone; });
  std::sort(late_stores_.begin(), late_stores_.end());
}

Left FencedInput::with_fences_after(std::vector<uint32_t> stores, FenceTime time) const {
  std::sort(stores.begin(), stores.end());
  return violations_left(with_fences(question_, stores, time));
}

Left FencedInput::with_fences_at(const std::function<bool(const std::string& location)>& wanted,
                                 FenceTime time) const {
  std::vector<uint32_t> after;
  for (const uint32_t store : late_stores_) {
    spend(4);
    if (wanted(location_of(question_.trace, store))) {
      after.push_back(store);
    }
  }
  return with_fences_after(std::move(after), time);
}

}  // namespace tsomon::explain
