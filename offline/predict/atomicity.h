// Atomicity violations that can happen in another schedule of the run that a trace shows.
//
// Purpose     Units (tso/model/units.h) that no order one after another explains: an access of a
//             unit conflicts with one of another thread that comes after it, and that one, or
//             another of its unit or later in its thread, conflicts with a later access of the
//             unit. With one remote access these are the two-access patterns (read-write-read and
//             so on); with two the cycle goes through two locations. Each comes with a reordering
//             that ends when the cycle is closed, and the validator has accepted it.
// Candidates  Pairs of accesses of a unit and accesses of another thread that clocks do not put
//             before or after both, and that no lock keeps out which the unit holds in between, be it
//             made of atomic operations (word_sections.h). One report for each tuple of source locations.
// Conflicts   Of data alone: a unit that takes a lock twice is no violation for that. Attempts of
//             waiting loops that fail are none (failed_attempts.h).
// Misses      Most cycles that need three threads, and all that need more (three_units.h). Reads and writes of atomic sets are judged as
//             all others: a unit that is declared on some sets is atomic as a whole. With three
//             threads or more `refused` tuples may still be possible.
// Bounds      The meter of the calling thread, kMaxAttempts and kMaxNodes for each tuple, kMaxCells
//             of a unit, and steps from one kind of accesses to another;
//             beyond them the result is not complete.
// Thread-safety: a pure function.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "offline/predict/asked_places.h"
#include "offline/predict/known_values.h"
#include "offline/predict/query.h"
#include "offline/predict/search_outcome.h"

namespace tsomon::predict {

struct AtomicityViolation {
  uint32_t first = 0;  // events of the trace: of the unit,
  uint32_t to = 0;     // of the other thread, after it
  uint32_t from = 0;   // of the same thread; mostly the same event
  uint32_t last = 0;   // of the unit, after that
  // Of a cycle of three threads (three_units.h): an event of the thread of `to`, which comes before
  // one of the thread of `from`. Else empty.
  std::vector<uint32_t> via;
  uint32_t label = 0;  // of the unit, in Symbols::labels
  Tier tier = Tier::kSyncPreserving;
  std::vector<uint32_t> witness;  // events of the reordering, up to `last`; empty: only in short
  ShortWitness brief;
  FoundPlaces in;  // where windows are looked at, AtomicityOptions::asked
};

struct AtomicityOptions {
  bool sync_preserving = true;
  uint64_t max_witness_events = 5'000'000;  // of all witnesses that are kept whole
  // A cycle of two units and two locations is reported once, whichever of its accesses closes it;
  // true: for each of them.
  bool every_end = false;
  unsigned jobs = 1;  // threads; the result does not depend on it
  // In other windows of the input, and here in the end. What was found is asked about again: what another end of the
  // same cycle comes to depends on it.
  AskedPlaces* asked = nullptr;
  const KnownValues* values = nullptr;  // of stores and of waiting loops
};

struct AtomicityResult : SearchOutcome {
  static constexpr uint32_t kMaxAttempts = 200;
  static constexpr uint64_t kMaxNodes = 8'000'000;
  static constexpr uint32_t kMaxCells = 256;

  std::vector<AtomicityViolation> violations;  // in the order of their events
};

AtomicityResult predict_atomicity(Query& query, const AtomicityOptions& options = {});

}  // namespace tsomon::predict
