// Somebody who is told of the events of a run while it is watched, beside the detector.
//
// Order       Blocks come in the order of their time, as the detector gets them.
// Thread-safety: all calls are from the thread that judges.
#pragma once

#include "monitor/findings/reported_cycle.h"
#include "tso/model/trace.h"

namespace tsomon {

class EventFollower {
 public:
  EventFollower() = default;
  EventFollower(const EventFollower&) = delete;
  EventFollower& operator=(const EventFollower&) = delete;
  virtual ~EventFollower() = default;

  // `symbols` grow. `names` may be asked during the call alone.
  virtual void add(const EventBlock& block, const Symbols& symbols, const ReportNames& names) = 0;
  // Nothing came for a while.
  virtual void idle(const ReportNames& names) = 0;
  // No more events.
  virtual void finish(const Symbols& symbols, const ReportNames& names) = 0;
};

}  // namespace tsomon
