// Uses of memory after it was freed, and of locks after they were destroyed.
//
// Purpose     What a thread accesses can be gone: in some reordering of the trace, or in the trace as
//             it is, an access to a block of memory comes after the block's end, a second end of the
//             block after the first, an operation of a lock, condition variable or semaphore after
//             its end or after that of the block it lies in. Each comes with that order, and the
//             validator has accepted it.
// Source      This project's own rules: an end is a write of all bytes, the operation of a lock a
//             read of the lock.
// Races       An end and a use that can both be next are a race of the two, too, for whoever asks about
//             races alone. So are the beginning of a lock (pthread_mutex_init and its relatives) and
//             a use of that lock by another thread: nothing else says that it may be used too early.
// Blocks      As block_names.h tells them apart.
// Candidates  Uses by another thread that clocks do not order with the end; one report for each pair
//             of source locations. Uses that did come after the end of a block need no search.
// Misses      A lock that was used after its end, with an order from the end to the use: it may have
//             been initialised again, which no event says. Waits for condition variables. With three
//             threads or more `refused` pairs may still be uses.
// Bounds      As races.h.
// Complexity  O(accesses), and a search for each pair of places.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/asked_places.h"
#include "offline/predict/query.h"
#include "offline/predict/races.h"
#include "offline/predict/search_outcome.h"

namespace tsomon::predict {

struct UseAfterEnd {
  uint32_t end = 0;  // events of the trace
  uint32_t use = 0;
  bool happened = false;  // in the trace as it is
  Tier tier = Tier::kSyncPreserving;
  // The events of the reordering, the use last. Empty: it was validated, and only `brief` was kept.
  std::vector<uint32_t> witness;
  ShortWitness brief;
  FoundPlaces in;  // where windows are looked at, LifetimeOptions::asked
};

struct LifetimeOptions {
  bool frees = true;
  bool destroys = true;
  bool sync_preserving = true;
  uint64_t max_witness_events = 5'000'000;
  unsigned jobs = 1;
  AskedPlaces* asked = nullptr;  // in other windows of the input, and here in the end
};

struct LifetimeResult : SearchOutcome {
  static constexpr uint32_t kMaxAttempts = 100;

  std::vector<UseAfterEnd> after_free;  // in the order of their ends
  std::vector<UseAfterEnd> after_destroy;
};

LifetimeResult predict_lifetimes(Query& query, const LifetimeOptions& options);

// Ends, as far as the options ask for them, and beginnings of locks, that race with a use. Adds to what
// is known of races.
void predict_lifetime_races(Query& query, const LifetimeOptions& options, RaceResult* races);

}  // namespace tsomon::predict
