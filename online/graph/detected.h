// What the detector is asked and what it finds: options, cycles, components, candidates, slices,
// statistics.
//
// Purpose     The vocabulary that the conflict graph, the policies and the detector share
//             (online/detector/detector.h says what they mean together).
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "online/stream/late_read.h"
#include "tso/check/analysis.h"
#include "tso/check/atomic_sets.h"
#include "tso/model/relation.h"
#include "tso/model/trace.h"

namespace tsomon {

enum class DetectorPolicy : uint8_t {
  kSc,          // program order and all conflicts in the order of the input
  kTso,         // directed and undirected edges
  kRobustness,  // the same, but single events are the nodes, and program order is whole
  kAtomicSets,  // one graph for every atomic set, no program order
};

// In place of a thread: events of some thread are missing.
inline constexpr ThreadId kNoThread = 0xFFFFFFFFU;

// What the tests of the detector change; everybody else takes it as it is.
struct DetectorTuning {
  bool collect = true;  // false: nothing is ever dropped
  bool coalesce_singletons =
      true;               // accesses outside units share nodes, where that changes nothing
  bool fast_path = true;  // of accesses that meet nothing of other threads
  // Accesses that a location remembers; of more only those make edges from which others follow.
  uint32_t edge_reduction_above = 12;
  // Finished units kept before some are merged, or one for eight locations in memory; a sixteenth
  // of them as long as fewer than one unit in 1,024 has an undirected edge. Of eight times as many
  // merged ones it stays known which they were, for candidates that they turn out to lie on.
  uint32_t max_retained = 16384;
  // Finished units kept before recorded values are asked which can go, and of how many of the
  // latest events.
  uint32_t value_inference_threshold = 4096;
  uint64_t value_inference_span = 1ULL << 17;
  uint32_t max_pending_stores = 4096;  // of one thread to one location, and ...
  uint32_t max_pending_units = 4096;   // ... units of one thread, that no fence ever makes visible
};

struct DetectorOptions {
  DetectorPolicy policy = DetectorPolicy::kTso;
  RelationOptions relation;           // model and order are not looked at
  SetChoice sets = SetChoice::kAuto;  // kAtomicSets
  // Where this is true, and nothing has been lost or was late, recorded values say which finished
  // units can go when many are kept (DetectorTuning).
  bool values = true;
  uint64_t history_events = 1ULL << 20;  // kept for the traces of candidates; 0: none
  DetectorTuning tuning;
};

// One access, as much of it as a report needs.
struct DetectedAccess {
  uint64_t index = 0;  // of the event in the input
  uint64_t address = 0;
  uint32_t size = 0;
  uint32_t location = Event::kNoLocation;  // in Symbols::locations
  ThreadId thread = 0;
  EventKind kind = EventKind::kRead;
};

inline Event event_of(const DetectedAccess& access) {
  Event event;
  event.set_kind(access.kind);
  event.thread = access.thread;
  event.address = access.address;
  event.size = access.size & Event::kMaxSize;
  event.location = access.location;
  return event;
}

struct DetectedUnit {
  ThreadId thread = 0;
  uint32_t label = Interner::kNone;  // in Symbols::labels; kNone: an event of its own
  uint64_t first = 0;                // indices of its first and (so far) last event
  uint64_t last = 0;
  bool finished = true;
  uint32_t merged = 0;  // further units that were merged into this one
  // Several events of their own share a node. A cycle has a step for each event.
  bool shared() const { return label == Interner::kNone && merged == 0 && first != last; }
};

// Where the units are in events numbered by `index`, in increasing order.
std::vector<EventRange> ranges_of(const std::vector<DetectedUnit>& units,
                                  const std::vector<uint64_t>& index);

// A unit on a cycle and the edge that leaves it towards the next one.
struct DetectedStep {
  DetectedUnit unit;
  DetectedAccess from;
  DetectedAccess to;
  EdgeKind kind = EdgeKind::kConflict;
};

struct DetectedCycle {
  std::vector<DetectedStep> steps;  // the edge of the last one leads to the first
  uint64_t component = 0;  // number of the strongly connected component, stable while it grows
  uint64_t component_units = 0;  // units in that component now
  // The same of those that repeat it: its place in the detector's cycle_counts().
  uint32_t kind = 0;
  // kAtomicSets: index in Symbols::sets; kNone: an object, or all locations.
  uint32_t set = Interner::kNone;

  // Not, when intervals overlap that are ordered by the cycle (kAtomicSets).
  bool certain() const;
};

// A strongly connected component of the directed conflict graph, when it can grow no more.
struct DetectedComponent {
  uint64_t component = 0;
  uint64_t units = 0;
  std::vector<DetectedUnit> members;  // some of them when there are many
};

// A slice of the input out of the history, with the stores that may have been in a buffer when it
// begins, and the position of every event of it in the input. Symbols are those of the input, but
// what memory held at the beginning is not known.
struct DetectedSlice {
  EventBlock events;
  std::vector<uint64_t> index;
  uint32_t pending_prefix = 0;  // of a trace of them
  // False: a store may be missing that was in a buffer at the beginning, so that recorded values
  // must not be looked at.
  bool all_stores = true;
  // Only executions in which older stores than those had committed (bounded_detector.h): what they
  // show may happen, and nothing is certain by them.
  bool some_executions = false;
  std::vector<InitialValue> initial;  // see EventHistory; only with events around it
  std::vector<LockWord> lock_words;
  std::vector<LateRead> late_reads;
};

struct DetectedCandidate {
  std::vector<DetectedUnit> units;   // by first event
  bool directed = false;             // contains a directed cycle: definite
  bool complete = true;              // units and events are all there
  std::vector<uint64_t> components;  // of its directed cycles (DetectedCycle::component)
  // kAtomicSets: index in Symbols::sets, or an object; kNone and no size: all locations.
  uint32_t set = Interner::kNone;
  LocationKey object;
  uint64_t object_begin = 0;  // index of its allocation
  // From the first to the last event of these units. Empty when the candidate is not complete.
  DetectedSlice slice;
};

struct DetectorStatistics {
  uint64_t events = 0;
  uint64_t units = 0;
  uint64_t sharing = 0;  // of these, events of their own that share the node of another
  uint64_t alone = 0;    // accesses that met none of other threads
  uint64_t quiet = 0;    // loads that met only loads, or repeated another
  uint64_t directed_edges = 0;
  uint64_t undirected_edges = 0;
  uint64_t cycles = 0;            // every closed cycle, repeated ones included
  uint64_t different_cycles = 0;  // by source locations
  uint64_t candidates = 0;
  uint64_t incomplete_candidates = 0;
  uint64_t late_events = 0;
  uint64_t uncertain = 0;  // kAtomicSets: conflicts whose order is not certain
  bool unordered = false;  // OpenHandOvers
  bool misled = false;     // LockWords
  uint64_t objects = 0;    // kAtomicSets: allocated ones
  uint64_t evicted = 0;    // stores or units evicted because of DetectorTuning::max_pending_*
  uint64_t collected = 0;  // units
  uint64_t merged = 0;     // units
  uint64_t asked = 0;      // how often recorded values were asked which units can go, and ...
  uint64_t known = 0;      // ... how many could
  uint64_t retained = 0;   // units in memory now
  uint64_t locations = 0;  // in memory now
};

struct DetectorCallbacks {
  std::function<void(const DetectedCycle&)> on_cycle;          // a new one
  std::function<void(const DetectedComponent&)> on_component;  // final
  std::function<void(DetectedCandidate&&)> on_candidate;       // final
  // Whether on_candidate wants the events of this candidate; absent: always.
  std::function<bool(const DetectedCandidate&)> wants_events;
  // As on_cycle, one that is known.
  std::function<void(const DetectedCycle&)> on_repeated{};
  // Before these: the component with the first number is part of the other one from now on.
  std::function<void(uint64_t, uint64_t)> on_joined{};
};

}  // namespace tsomon
