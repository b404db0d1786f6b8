// Directed edges that follow from the order of issues.
//
// Source      Theory section 5.1: two conflicting accesses of different threads were issued in the
//             order that the trace shows, whenever the first one takes effect.
// Purpose     A load from memory takes effect when it is issued. So the last load from memory, or
//             fence, up to an access comes before every conflicting access of another thread that
//             was certainly issued later, and before the next load from memory behind that one.
//             With these edges a cycle of open edges that fit together is one of an execution, also
//             where loads may be forwarded: the forwarding constraints of 5.1 follow.
// Complexity  O(n * threads * log n). Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/relation.h"
#include "tso/order/event_graph.h"

namespace tsomon {

// What takes effect when it is issued, around each event of its thread: a load from memory, or an
// event that drains. kNone: there is none. O(n) to build.
struct EffectNeighbours {
  explicit EffectNeighbours(const Relation& relation);

  std::vector<uint32_t> before;  // the event itself, or the last one before it
  std::vector<uint32_t> behind;  // the first one after it
};

void add_issue_edges(const Relation& relation, const AccessIndex& accesses,
                     const EffectNeighbours& neighbours, std::vector<Edge>* edges);

}  // namespace tsomon
