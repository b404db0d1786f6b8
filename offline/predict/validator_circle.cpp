#include <algorithm>

#include <fmt/format.h>

#include "offline/predict/validator.h"

namespace tsomon::predict {

// In a thread, or a unit of one.
bool Validator::leads_on(uint32_t to, uint32_t from, const UnitTable& units) const {
  return trace_.events[to].thread == trace_.events[from].thread &&
         (to <= from ||
          (units.of_event(to) != UnitTable::kNone && units.of_event(to) == units.of_event(from)));
}

std::string Validator::check_circle(std::span<const uint32_t> tail, uint32_t start,
                                    const std::array<uint32_t, 6>& events, const UnitTable& units) {
  std::array<size_t, 6> at{};
  if (std::string wrong = find_places(tail, start, events, at); !wrong.empty()) {
    return wrong;
  }
  if (buffers_ || at[5] + 1 != start + tail.size() || at[0] >= at[1] || at[2] >= at[3] ||
      at[4] >= at[5]) {
    return "the events are not in the order that is claimed";
  }
  const auto thread = [&](size_t i) { return trace_.events[events[i]].thread; };
  if (thread(0) == thread(1) || thread(0) == thread(3) || thread(1) == thread(3) ||
      events[0] == events[5] || units.of_event(events[0]) != units.of_event(events[5]) ||
      units.of_event(events[0]) == UnitTable::kNone || !leads_on(events[1], events[2], units) ||
      !leads_on(events[3], events[4], units)) {
    return "the events are not of one unit and two other threads";
  }
  if (!conflict(events[0], events[1]) || !conflict(events[2], events[3]) ||
      !conflict(events[4], events[5])) {
    return "the events do not conflict";
  }
  return replay(tail, start, 1);
}

}  // namespace tsomon::predict
