// The slices of a store of `tsomon monitor`, on their way into a fleet.
//
// What        Slices that show a finding, the oldest first. The store is the spool: while the server is away it keeps them, within its
//             bound; what the store lets go before it was judged is lost, and counted.
// Counters    The service that keeps the store says what it did so far; the fleet has what it said last.
// Until when  A slice is the fleet's concern once it has a verdict, or was given up. Until then it is asked about, and submitted again
//             if the fleet has lost it. The file `fleet` in the store has the number of the last slice before which that is
//             so of all: whoever begins anew goes on there.
// Errors      Those of the store and of the fleet; the next step() tries again.
// Complexity  step(): O(findings of the store and slices that are not judged yet).
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "monitor/fleet/fleet.h"
#include "monitor/fleet/submission.h"
#include "tso/support/result.h"

namespace tsomon::fleet {

struct ForwardCounters {
  uint64_t submitted = 0;  // slices; one that was submitted again counts again
  uint64_t judged = 0;
  uint64_t parked = 0;
  uint64_t lost = 0;  // they went before they were judged
};

class StoreForwarder {
 public:
  static constexpr std::chrono::seconds kBetweenCanaries{10};
  static constexpr size_t kMostPending = 1000;  // slices that are submitted, and not judged yet

  StoreForwarder(Fleet& fleet, std::string store, SubmissionOptions options);
  // Submits what is new, and looks what became of the rest. True: nothing is left to do now.
  Result<bool> step(const std::function<bool()>& stopped);
  const ForwardCounters& counters() const { return counters_; }
  const std::vector<std::string>& ids() const { return ids_; }  // that the last step submitted

 private:
  using Slices = std::map<int64_t, std::string>;  // files, by number

  Result<Slices> slices_to_send() const;
  Result<void> send(int64_t number, const std::string& file, bool again);
  // False: it is settled.
  Result<bool> is_pending(int64_t number, const std::string& file);
  Result<void> tell_counters();
  Result<void> keep_mark();
  std::string mark_file() const { return store_ + "/fleet"; }

  Fleet& fleet_;
  const std::string store_;
  const SubmissionOptions options_;
  ForwardCounters counters_;
  std::vector<std::string> ids_;
  std::chrono::steady_clock::time_point next_canary_;
  int64_t settled_ = 0;  // all before and this one
  int64_t sent_ = 0;
  std::map<int64_t, std::pair<std::string, std::vector<std::string>>> pending_;  // file, and work
};

}  // namespace tsomon::fleet
