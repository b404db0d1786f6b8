#include "tso/model/units.h"

#include "tso/support/work.h"

namespace tsomon {
namespace {

struct OpenUnit {
  UnitId unit = UnitTable::kNone;
  uint32_t depth = 0;
};

}  // namespace

UnitTable::UnitTable(const Trace& trace) : of_event_(trace.events.size(), kNone) {
  std::vector<OpenUnit> open;
  spend(2 * trace.events.size());
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.thread >= open.size()) {
      open.resize(event.thread + 1);
    }
    OpenUnit& current = open[event.thread];
    const auto start = [&](uint32_t label, bool finished) {
      units_.push_back({event.thread, label, i, i, finished});
      return size() - 1;
    };
    switch (event.kind()) {
      case EventKind::kUnitBegin:
        if (current.depth++ == 0) {
          current.unit = start(static_cast<uint32_t>(event.address), false);
        }
        break;
      case EventKind::kUnitEnd:
        if (current.depth == 0) {
          continue;
        }
        --current.depth;
        break;
      case EventKind::kWait:
        // The wait belongs to the part before it; the part after it begins with the next event.
        if (current.depth > 0) {
          of_event_[i] = current.unit;
          units_[current.unit].last_event = i;
          units_[current.unit].finished = true;
          const uint32_t label = units_[current.unit].label;
          current.unit = start(label, false);
        }
        continue;
      default:
        if (current.depth == 0 && !is(event, kinds::kNodes)) {
          continue;
        }
        break;
    }
    const UnitId unit = current.unit != kNone ? current.unit : start(Interner::kNone, true);
    of_event_[i] = unit;
    units_[unit].last_event = i;
    if (event.kind() == EventKind::kUnitEnd && current.depth == 0) {
      units_[unit].finished = true;
      current.unit = kNone;
    }
  }
}

}  // namespace tsomon
