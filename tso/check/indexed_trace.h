// What each analysis of a trace needs first: made once, also where one analysis follows another.
//
// Memory      Some 100 bytes for an event. O(n log n).
// Thread-safety: const access is safe.
#pragma once

#include "tso/model/location_table.h"
#include "tso/model/relation.h"
#include "tso/model/trace.h"
#include "tso/model/units.h"
#include "tso/order/event_graph.h"

namespace tsomon {

// The trace outlives it.
struct IndexedTrace {
  IndexedTrace(const Trace& of, const RelationOptions& options)
      : trace(of), units(of), locations(of), relation(of, locations, options), accesses(relation) {}
  IndexedTrace(const IndexedTrace&) = delete;  // its parts point to each other

  const Trace& trace;
  const UnitTable units;
  const LocationTable locations;
  const Relation relation;
  const AccessIndex accesses;
};

}  // namespace tsomon
