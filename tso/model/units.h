// Units of work (transactions) of a trace.
//
// Purpose     Assigns every event of the event graph to the node of the conflict graph it belongs
//             to: the outermost open unit of its thread, or a unit of its own (theory section 1).
//             A condition wait splits the unit it is in (theory section 7).
// Unfinished  A unit still open at the end of the trace is a unit like any other. An end without a
//             begin is ignored here: text traces refuse it, captures have it after a gap.
// Complexity  O(n). Immutable after construction.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

using UnitId = uint32_t;

struct Unit {
  ThreadId thread = 0;
  uint32_t label = Interner::kNone;  // in Symbols::labels; kNone: an event of its own
  uint32_t first_event = 0;          // the first and last events that belong to the unit,
  uint32_t last_event = 0;           // its begin and end included
  bool finished = true;
};

class UnitTable {
 public:
  static constexpr UnitId kNone = 0xFFFFFFFFU;

  UnitTable() = default;
  explicit UnitTable(const Trace& trace);
  // Of events that were taken out of a trace. `of_event`: of each of them.
  UnitTable(std::vector<Unit> units, std::vector<UnitId> of_event)
      : units_(std::move(units)), of_event_(std::move(of_event)) {}

  uint32_t size() const { return static_cast<uint32_t>(units_.size()); }
  const Unit& operator[](UnitId unit) const { return units_[unit]; }
  UnitId of_event(size_t event) const { return of_event_[event]; }  // kNone: not in a unit

 private:
  std::vector<Unit> units_;
  std::vector<UnitId> of_event_;
};

}  // namespace tsomon
