// The online detector: cycles among units of work, found while the events arrive.
//
// Source      Theory sections 2, 5 and 7 (Enea & Farzan, TACAS 2016; Sumner, Hammer, Dolby, RV
//             2011); collection of finished units after Marathon, extended to store buffers.
// Input       Events ordered by the start of their intervals (`lo`), those of one thread in program
//             order. An event that comes too late for that is counted and makes the result
//             incomplete; nothing that is reported becomes wrong by it.
// Cycles      A cycle of directed edges is a definite violation and is reported by the event that
//             closes it. The strongly connected component it belongs to is then one node: further
//             cycles are reported when they enlarge a component or join components, once for each sequence of
//             source locations, with a count.
// Candidates     A group of units whose undirected edges could close a cycle in some orientation is
//             flagged when it can no longer change. Every violating cycle of the input lies
//             inside one candidate, as long as the candidate is `complete`. (Not of atomic sets.)
// Collection  Finished units that no future cycle can use are dropped. When many remain because of
//             undirected edges, recorded values give the order of most of these, and which units
//             can go after all (value_order.h). Those that remain then, and are
//             reached from the same unfinished units, are merged once there are more than
//             `max_retained`. Memory depends on the units alive, the locations in use and the
//             threads, not on the length of the input.
// Complexity  Amortised O(threads) for an access and, for an edge against the present order,
//             a search of the affected region (topological_order.h).
// Robustness  A trace is not robust when some order of what is open becomes cyclic together with
//             whole program order (theory section 6). So the nodes are single events, whatever
//             units there are, with an edge from each to the next of its thread; conflicts are
//             those of kTso. Every such cycle lies in a candidate. No directed cycle arises:
//             committing every store at once is always one of the orders.
// Atomic sets The graph of a set has the order of the input; where intervals overlap the edge says
//             so, and a cycle with such an edge is a possible violation. Two units with such an
//             edge are a candidate, for the other order may close a cycle: of the same labels and
//             source locations the first sixteen and then ever fewer. A cycle inside an
//             object is reported when all accesses so far are over, for the end of the object can
//             show that one of them was to another object. A certain cycle that joins units of a
//             possible one is not reported again.
// Misses      Recorded values are looked at to drop units, not to flag candidates: they can turn a
//             flagged candidate into a clean or a definite one (tso/check/analysis.h). In a candidate
//             whose units were merged, or whose events have left the history, only definite
//             violations are known.
// Thread-safety: none; one detector belongs to one thread at a time. Callbacks run inside add()
//             and finish() and must not call the detector.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "online/graph/detected.h"
#include "tso/model/trace.h"

namespace tsomon {

class EventHistory;

class Detector {
 public:
  // `symbols` must outlive the detector and may grow while events arrive.
  Detector(const Symbols& symbols, const DetectorOptions& options, DetectorCallbacks callbacks);
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;
  ~Detector();

  // The next events of the input; `first_index` is the index of the first of them.
  void add(const EventBlock& block, uint64_t first_index);
  // Events of a thread are missing here (kNoThread: of some thread): its open units end, and
  // candidates around this point are incomplete.
  void lost(ThreadId thread);
  // Collects and flags what can be flagged now; add() does so by itself from time to time.
  void sweep();
  // The input ends: everything left is flagged.
  void finish();

  // From event `first` to event `last`, with the stores that may have been in a buffer at `first`.
  // The history holds the latest DetectorOptions::history_events events at least; what has left it
  // is left out.
  // With at most `around` events more before, behind (not for atomic sets) all or those that began
  // before everything from `first` to `last` was over, and what is known of memory.
  DetectedSlice slice(uint64_t first, uint64_t last, uint64_t around = 0,
                      bool all_behind = false) const;
  // What memory held at the beginning of a slice is not known, and a load that may have read a
  // store behind its end has lost its value: the more is known of both, the more values say. A
  // candidate that some executions violate, and some do not, is worth a look with so many more events.
  static constexpr std::array<uint64_t, 3> kAround{0, 256, 8192};

  // What slice() reads, to go on with by itself: nothing is to be asked of the detector any more.
  EventHistory release_history();

  // Nothing was late, lost, evicted or handed over in an unknown order: what was not reported or
  // flagged is serializable.
  bool complete() const;
  DetectorStatistics statistics() const;
  // How often each reported cycle was closed, in the order of the reports.
  const std::vector<uint64_t>& cycle_counts() const;
  // Aborts with a message when the internal structures contradict each other. Slow.
  void check_invariants() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tsomon
