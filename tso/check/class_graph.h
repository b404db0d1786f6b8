// The conflict graph of a trace, as far as a cycle can lie in it.
//
// Source      Theory section 3: the conflict graph merges the events of a class into one node;
//             classes are units, for robustness (theory section 6) single events.
// Purpose     What the components of a trace are found in. Classes are numbered by their first events,
//             and most edges lead to a later one: a cycle needs an edge that leads back, or an open
//             one. Between the least and the greatest class that those connect lie all cycles;
//             edges outside of such slices, in most recordings nearly all, are left out.
// Complexity  O(events + edges), 8 bytes an event and 20 an edge that is kept.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/check/witness.h"
#include "tso/model/units.h"
#include "tso/order/mixed_graph.h"
#include "tso/order/refinement.h"

namespace tsomon {

class ClassGraph {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  ClassGraph(const Trace& trace, const UnitTable& units, const RefinedGraph& graph,
             Property property);

  uint32_t classes() const { return classes_; }
  // By event; kNone: no node of the event graph.
  const std::vector<uint32_t>& class_of() const { return class_of_; }
  uint32_t class_of(uint32_t e) const { return class_of_[e]; }
  const std::vector<MixedEdge>& edges() const { return edges_; }
  const Edge& events_behind(uint32_t edge) const { return events_behind_[edge]; }

 private:
  std::vector<uint32_t> class_of_;
  uint32_t classes_ = 0;
  std::vector<MixedEdge> edges_;
  std::vector<Edge> events_behind_;  // each edge
};

}  // namespace tsomon
