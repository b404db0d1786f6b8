#include "monitor/judge/input_order.h"

namespace tsomon {

Result<bool> InputOrder::add(uint64_t first, const BlockOrigin& origin, bool keep_times) {
  changed_ = true;
  auto kept = lines_.add(first, origin.lines);
  for (const BlockOrigin::Raised& raised : origin.raised) {
    if (keep_times) {
      raised_.push_back({first + raised.event, raised.lo});
    }
  }
  return kept;
}

std::optional<Trace> InputOrder::restore(const Trace& ordered, std::vector<uint64_t>* place) const {
  std::vector<int64_t> lo;
  place->assign(ordered.events.size(), 0);
  for (uint64_t position = 0; position < place->size(); ++position) {
    lo.push_back(ordered.events[position].lo);
    const uint64_t line = lines_.line(position);
    if (line >= place->size()) {
      return std::nullopt;
    }
    (*place)[line] = position;
  }
  for (const auto& [position, earlier] : raised_) {
    lo[position] = earlier;
  }
  Trace trace;
  trace.symbols = ordered.symbols;
  trace.complete = ordered.complete;
  trace.lost_events = ordered.lost_events;
  for (const uint64_t position : *place) {
    const Event& event = ordered.events[position];
    Event own = event;
    own.has_hi = own.has_read_value = own.has_write_value = 0;
    trace.add(own, lo[position], ordered.hi(event), ordered.read_value(event),
              ordered.write_value(event));
  }
  return trace;
}

}  // namespace tsomon
