// Data races that can happen in another schedule of the run that a trace shows.
//
// Purpose     Two conflicting accesses of different threads race if some reordering of the trace
//             leads to a state in which both are next. Every race comes with that reordering, and
//             the validator has accepted it.
// Candidates  Pairs on a cell that clocks do not order and no common lock excludes, one report for
//             each pair of source locations (of cell and threads where the trace has no locations).
// Atomics     Two atomic accesses (Event::atomic) never race, an atomic and a plain one do, on the
//             bytes that both access. Inputs that do not say what is atomic: outside_events.h.
// Misses      With three threads or more `refused` pairs may still race.
// Bounds      The meter of the calling thread (tso/support/work.h): when it ends, or a pair of
//             locations has been refused kMaxAttempts times or kMaxNodes have been looked at for
//             it, the result is not complete. Windows (query.h) bound what one pair takes.
// Complexity  Candidates x tier. Memory: the model and the witnesses that are kept.
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/predict/asked_places.h"
#include "offline/predict/branches.h"
#include "offline/predict/query.h"
#include "offline/predict/search_outcome.h"
#include "tso/model/trace.h"

namespace tsomon::predict {

// Traces that are longer cannot be asked about: numbers of events have 32 bits.
inline constexpr uint64_t kMaxEvents = uint64_t{1} << 31;

struct Race {
  uint32_t first = 0;  // events of the trace, first < second
  uint32_t second = 0;
  Tier tier = Tier::kSyncPreserving;
  // The events of the reordering, the two accesses last. Empty: it was validated, and only `brief`
  // was kept.
  std::vector<uint32_t> witness;
  ShortWitness brief;
  FoundPlaces in;  // where windows are looked at, RaceOptions::asked
};

struct RaceOptions {
  Branches branches = Branches::kAuto;
  // Of all witnesses that are kept whole.
  uint64_t max_witness_events = 5'000'000;
  bool sync_preserving = true;   // the first tier
  unsigned jobs = 1;             // threads; the result does not depend on it
  Windows windows;               // where the query is made from a trace
  AskedPlaces* asked = nullptr;  // in other windows of the input, and here in the end
};

struct RaceResult : SearchOutcome {
  static constexpr uint32_t kMaxAttempts = 200;
  static constexpr uint64_t kMaxNodes = 8'000'000;

  std::vector<Race> races;              // in the order of their events
  Branches branches = Branches::kAuto;  // what was taken
};

RaceResult predict_races(const Trace& trace, const RaceOptions& options);
// Of a query that has been made, with its branches.
RaceResult predict_races(Query& query, const RaceOptions& options);

}  // namespace tsomon::predict
