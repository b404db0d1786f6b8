// A deadlock as it happened, in words: threads that wait for one another when a recording ends.
//
// Purpose     What LastWaits found, with names and places; it is said before all that could happen.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "monitor/findings/finding_places.h"
#include "monitor/findings/last_waits.h"
#include "monitor/findings/reported_cycle.h"
#include "tso/support/result.h"

namespace tsomon {

struct HappenedDeadlock {
  struct Thread {
    StuckThread::For waits_for = StuckThread::For::kLock;
    ReportedAccess wait;
    std::vector<std::string> held_by;     // threads
    std::optional<ReportedAccess> taken;  // the acquisition of what it waits for
    std::vector<ReportedAccess> holds;    // the acquisitions of what it holds
  };
  std::vector<Thread> threads;  // of a circle, each waits for the next

  bool any() const { return !threads.empty(); }
  // Where the threads wait, which the fingerprint is made of, and where they took what they hold.
  FindingPlaces places() const;
  std::string text() const;  // several lines; empty: none
  nlohmann::ordered_json json() const;
};

HappenedDeadlock happened_deadlock(const std::vector<StuckThread>& stuck, const Symbols& symbols,
                                   const ReportNames& names);

// Of a text trace, which is malformed then.
Error two_holders_error(const TwoHolders& holders, const Symbols& symbols);

}  // namespace tsomon
