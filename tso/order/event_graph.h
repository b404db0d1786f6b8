// The event graph of a trace: directed and undirected edges between events.
//
// Source      Theory section 2 (EG), refined by 5.1 to 5.4.
// Purpose     The same order as Relation::between for all pairs of events, with far fewer edges:
//             a directed edge that follows from others is left out (per thread, per location and
//             pair of threads only the latest predecessor is kept; of many threads' those that no
//             store to the location comes after), undirected edges are all there.
//             Nodes are event indices of the trace; events that are no nodes have no edges.
// Complexity  O(n * (threads + overlapping ranges) + u) for u undirected edges; u is quadratic for
//             stores that no fence ever makes visible, so it is bounded: past the bound the graph is
//             incomplete() and only a violation found in it may be reported.
// Thread-safety: immutable once built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tso/model/relation.h"
#include "tso/support/work.h"

namespace tsomon {

struct Edge {
  uint32_t from = 0;
  uint32_t to = 0;
  bool operator==(const Edge&) const = default;
};

// The accesses of one thread to one location, in program order.
struct ThreadAccesses {
  ThreadId thread = 0;
  std::span<const uint32_t> writes;  // everything that conflicts with a load
  std::span<const uint32_t> reads;   // loads and reader locks
};

class AccessIndex {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  explicit AccessIndex(const Relation& relation);
  AccessIndex(AccessIndex&&) = default;
  AccessIndex(const AccessIndex&) = delete;  // the lists point into it

  // One for each thread that accesses the location, in the order of the first accesses.
  std::span<const ThreadAccesses> at(LocationId location) const {
    return {of_threads_.data() + first_[location], of_threads_.data() + first_[location + 1]};
  }

  // All lists lie one after the other in events(): of at(location)[i] the writes are list
  // first_list(location) + 2i, the reads the next one.
  uint32_t first_list(LocationId location) const { return 2 * first_[location]; }
  uint32_t list_of(uint32_t e) const { return list_of_[e]; }  // kNone: no access
  uint32_t lists() const { return 2 * static_cast<uint32_t>(of_threads_.size()); }
  std::span<const uint32_t> list(uint32_t number) const {
    const ThreadAccesses& accesses = of_threads_[number / 2];
    return number % 2 == 0 ? accesses.writes : accesses.reads;
  }
  const std::vector<uint32_t>& events() const { return events_; }

 private:
  std::vector<uint32_t> events_;
  std::vector<ThreadAccesses> of_threads_;
  std::vector<uint32_t> first_;    // of each location in of_threads_
  std::vector<uint32_t> list_of_;  // by event
};

// visit(number, thread) for the lists with accesses of another thread that conflict with e, until it
// is true of one. Whether it was.
template <typename Visit>
bool any_conflicting_list(const Relation& relation, const AccessIndex& accesses, uint32_t e,
                          const Visit& visit) {
  const LocationId location = relation.locations().of_event(e);
  if (location == LocationTable::kNone) {
    return false;
  }
  const ThreadId own = relation.trace().events[e].thread;
  const bool only_reads = relation.only_reads(e);
  for (const LocationId other : relation.locations().overlapping(location)) {
    uint32_t list = accesses.first_list(other);
    for (const ThreadAccesses& theirs : accesses.at(other)) {
      spend(1);
      if (theirs.thread != own &&
          (visit(list, theirs.thread) || (!only_reads && visit(list + 1, theirs.thread)))) {
        return true;
      }
      list += 2;
    }
  }
  return false;
}

// For all of them.
template <typename Visit>
void for_each_conflicting_list(const Relation& relation, const AccessIndex& accesses, uint32_t e,
                               const Visit& visit) {
  any_conflicting_list(relation, accesses, e, [&](uint32_t list, ThreadId thread) {
    visit(list, thread);
    return false;
  });
}

// Of events in program order, when something holds of each: at each place when it holds of that one
// or one after it, as it does of the first one then, too.
template <typename Time>
std::vector<int64_t> earliest_from(std::span<const uint32_t> events, const Time& time) {
  std::vector<int64_t> times(events.size());
  int64_t earliest = kTimeMax;
  for (size_t i = events.size(); i-- > 0;) {
    times[i] = earliest = std::min(earliest, time(events[i]));
  }
  return times;
}

struct EventGraph {
  std::vector<Edge> directed;
  std::vector<Edge> undirected;  // each once, in either direction
  bool complete = true;
};

// max_undirected bounds the undirected edges (12 bytes each while the graph is built).
EventGraph build_event_graph(const Relation& relation, const AccessIndex& accesses,
                             uint64_t max_undirected = 20'000'000);

// About how many undirected edges that graph would have at most, up to `most` or little more: those of every eighth event
// are counted, and none is looked at. O(n * threads * overlapping ranges).
uint64_t estimated_open_pairs(const Relation& relation, const AccessIndex& accesses, uint64_t most);

// The directed edges of that graph and others that follow from them, without looking at what is
// open: linear in the trace however much that is. O(n * threads * overlapping ranges * log n).
std::vector<Edge> directed_edges(const Relation& relation, const AccessIndex& accesses);

}  // namespace tsomon
