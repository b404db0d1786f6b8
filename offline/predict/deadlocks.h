// Deadlocks that can happen in another schedule of the run that a trace shows.
//
// Purpose     Threads that each wait for a lock that the next one holds, in a circle: some
//             reordering of the trace leads to a state in which each of them is about to acquire
//             it. Any number of threads, mutexes and reader/writer locks. Every deadlock comes with
//             that reordering, and the validator has accepted it.
// Candidates  Circles of acquisitions by distinct threads, no two of which hold a common lock that
//             would keep them apart. Acquisitions of one thread that hold and ask for the same
//             locks are one step of a circle; their events are tried in turn. One report for each
//             tuple of source locations.
// Source      Tunc, Mathur, Pavlogiannis, Viswanathan, Sound Dynamic Deadlock Prediction in Linear
//             Time (PLDI 2023) for the circles; query.h for what is asked about them.
// Upgrades    Readers that ask for their lock alone wait for the other readers.
// Misses      A thread that waits for itself. Notifications that are lost: the trace has none. A
//             try-lock counts as acquired where it succeeded, and not at all where it failed.
// Bounds      The meter of the calling thread, kMaxSteps of the search for circles, kMaxAttempts
//             for each circle: beyond them the result is not complete.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "offline/predict/query.h"
#include "tso/support/work.h"

namespace tsomon::predict {

struct Deadlock {
  // Acquisitions that wait, of events of the trace; each for the lock that the thread of the next
  // one holds. The first one is the earliest.
  std::vector<uint32_t> requests;
  std::vector<uint32_t> holders;  // for each, the event that acquired that lock
  Tier tier = Tier::kSyncPreserving;
  // Events of the reordering, without the requests. Empty: only `brief` was kept.
  std::vector<uint32_t> witness;
  ShortWitness brief;
};

struct DeadlockOptions {
  bool sync_preserving = true;
  uint64_t max_witness_events = 5'000'000;  // of all witnesses that are kept whole
};

struct DeadlockResult {
  static constexpr uint32_t kMaxAttempts = 500;
  static constexpr uint64_t kMaxSteps = 10'000'000;

  std::vector<Deadlock> deadlocks;  // in the order of their events
  uint64_t candidates = 0;          // tuples of locations
  uint64_t refused = 0;             // of these, no reordering was found
  uint64_t invalid = 0;             // not accepted by the validator: an internal error
  uint64_t without_witness = 0;     // kept in short
  bool bounded = false;
  bool windowed = false;  // some orders were looked for among the latest events alone
  std::optional<WorkLimit> ended;

  bool complete() const { return !ended && !bounded && !windowed && invalid == 0; }
};

DeadlockResult predict_deadlocks(Query& query, const DeadlockOptions& options = {});

}  // namespace tsomon::predict
