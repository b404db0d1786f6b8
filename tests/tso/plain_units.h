// The units of a trace as theory section 7 says it, by going through the thread for every event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon::testing {

// For each event the number of its unit: that of the event itself outside of units, else of the
// begin of the outermost one that is declared, or of the last condition wait inside of it.
inline std::vector<uint32_t> plain_units(
    const Trace& trace, const std::function<bool(const Event& begin)>& declared = {}) {
  std::vector<uint32_t> units;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    std::vector<uint32_t> open;
    uint32_t wait = 0;
    for (uint32_t before = 0; before < e; ++before) {
      const Event& event = trace.events[before];
      if (event.thread != trace.events[e].thread) {
        continue;
      }
      if (event.kind() == EventKind::kUnitBegin) {
        open.push_back(before);
      } else if (event.kind() == EventKind::kUnitEnd && !open.empty()) {
        open.pop_back();
      } else if (event.kind() == EventKind::kWait) {
        wait = before;
      }
    }
    uint32_t unit = e;
    for (const uint32_t begin : open) {
      if (!declared || declared(trace.events[begin])) {
        unit = wait > begin ? wait : begin;
        break;
      }
    }
    units.push_back(unit);
  }
  return units;
}

// The same units, with numbers from 0.
inline std::vector<uint32_t> numbered(std::vector<uint32_t> units) {
  std::map<uint32_t, uint32_t> numbers;
  for (uint32_t& unit : units) {
    unit = numbers.emplace(unit, static_cast<uint32_t>(numbers.size())).first->second;
  }
  return units;
}

}  // namespace tsomon::testing
