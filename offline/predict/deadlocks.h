// Deadlocks that can happen in another schedule of the run that a trace shows.
//
// Purpose     Threads that each wait for a lock that the next one holds, in a circle: some
//             reordering of the trace leads to a state in which each of them is about to acquire
//             it. Any number of threads, mutexes and reader/writer locks. Every deadlock comes with
//             that reordering, and the validator has accepted it.
// Candidates  Circles of acquisitions by distinct threads, no two of which hold a common lock that
//             would keep them apart. Acquisitions of one thread at one place in the source that
//             hold and ask for the same locks are one step of a circle; their events are tried in
//             turn. One report for each tuple of source locations.
// Source      Tunc, Mathur, Pavlogiannis, Viswanathan, Sound Dynamic Deadlock Prediction in Linear
//             Time (PLDI 2023) for the circles; query.h for what is asked about them.
// Upgrades    Readers that ask for their lock alone wait for the other readers.
// Lost        A wait begins when all notifications have come that do not need what its thread does
//             after it. Any of them would have woken it. Not where no read is bound (branches.h):
//             what a thread has read says whether it waits.
// Tries       An acquisition by a try, or within a time, holds but does not wait; a wait that ends
//             by time is none. One that failed is not in a trace.
// Window      Of a window of a longer run (window_start.h) a lost notification is none if one comes
//             after the window: that is for the caller to see (outside_events.h).
// Misses      A thread that waits for itself.
// Bounds      The meter of the calling thread, kMaxSteps of the search for circles, kMaxAttempts
//             for each circle: beyond them the result is not complete.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/asked_places.h"
#include "offline/predict/query.h"
#include "offline/predict/search_outcome.h"

namespace tsomon::predict {

enum class DeadlockKind : uint8_t {
  kCircle,            // of acquisitions
  kLostNotification,  // a wait, whose thread nobody wakes
};

struct Deadlock {
  DeadlockKind kind = DeadlockKind::kCircle;
  // Acquisitions that wait, of events of the trace; each for the lock that the thread of the next
  // one holds. The first one is the earliest.
  std::vector<uint32_t> requests;
  // For each, the event that acquired that lock. Of a wait the notifications that come too early,
  // the last one of each thread.
  std::vector<uint32_t> holders;
  Tier tier = Tier::kSyncPreserving;
  // Events of the reordering, without the requests. Empty: only `brief` was kept.
  // Of a wait that is the release of its mutex, with which it begins.
  std::vector<uint32_t> witness;
  ShortWitness brief;
  // Of a wait: whether its thread has accessed anything since it has the mutex, as far as was recorded.
  bool looked = true;
  FoundPlaces in;  // where windows are looked at, DeadlockOptions::asked
};

struct DeadlockOptions {
  bool sync_preserving = true;
  uint64_t max_witness_events = 5'000'000;  // of all witnesses that are kept whole
  unsigned jobs = 1;                        // threads; the result does not depend on it
  AskedPlaces* asked = nullptr;             // in other windows of the input, and here in the end
};

struct DeadlockResult : SearchOutcome {
  static constexpr uint32_t kMaxAttempts = 500;
  static constexpr uint64_t kMaxSteps = 10'000'000;

  std::vector<Deadlock> deadlocks;  // in the order of their events
};

DeadlockResult predict_deadlocks(Query& query, const DeadlockOptions& options = {});

}  // namespace tsomon::predict
