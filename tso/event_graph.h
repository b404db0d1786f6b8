// The event graph of a trace: directed and undirected edges between events.
//
// Source      Theory section 2 (EG), refined by 5.1 to 5.4.
// Purpose     The same order as Relation::between for all pairs of events, with far fewer edges:
//             a directed edge that follows from others is left out (per thread, per location and
//             pair of threads only the latest predecessor is kept), undirected edges are all there.
//             Nodes are event indices of the trace; events that are no nodes have no edges.
// Complexity  O(n * (threads + overlapping ranges) + u) for u undirected edges; u is quadratic for
//             stores that no fence ever settles, so it is bounded: past the bound the graph is
//             incomplete() and only a violation found in it may be reported.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/relation.h"

namespace tsomon {

struct Edge {
  uint32_t from = 0;
  uint32_t to = 0;
  bool operator==(const Edge&) const = default;
};

// The accesses of one thread to one location, in program order.
struct ThreadAccesses {
  ThreadId thread = 0;
  std::vector<uint32_t> writes;  // everything that conflicts with a load
  std::vector<uint32_t> reads;   // loads and reader locks
};

class AccessIndex {
 public:
  explicit AccessIndex(const Relation& relation);
  const std::vector<ThreadAccesses>& at(LocationId location) const { return lists_[location]; }

 private:
  std::vector<std::vector<ThreadAccesses>> lists_;
};

struct EventGraph {
  std::vector<Edge> directed;
  std::vector<Edge> undirected;  // each once, in either direction
  bool complete = true;
};

// max_undirected bounds the undirected edges (12 bytes each while the graph is built).
EventGraph build_event_graph(const Relation& relation, const AccessIndex& accesses,
                             uint64_t max_undirected = 20'000'000);

}  // namespace tsomon
