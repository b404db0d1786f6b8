// Cycles of units: of one execution, and those that all executions have.
//
// Source      Theory section 3.
// Complexity  O(n * (threads + log n)) for the edges and their components, then a search for a
//             short cycle from a few of the units.
// Thread-safety: pure functions of their arguments. Throws WorkEnded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "offline/check/crossing_witness.h"
#include "offline/check/thread_lists.h"

namespace tsomon {

// Edges of events, each leads to the unit that the next one leaves, and the last to the unit of
// the first; a short cycle if there is any. Nothing: the execution, of all events, has none.
std::optional<std::vector<Edge>> cycle_of_execution(const OrderedUnits& in,
                                                    const std::vector<Step>& execution);
// If there is one also the edges of the execution that lead back in an order of the units.
std::optional<std::vector<Edge>> cycle_of_execution(const OrderedUnits& in,
                                                    const std::vector<Step>& execution,
                                                    std::span<const uint32_t> place,
                                                    std::vector<Edge>* against);

// How units follow each other where nothing says which comes first.
enum class UnitOrder : uint8_t {
  kByEnd,
  kByThread,  // offline/check/units_by_thread.h
};

// The edges that every execution has, between units or events (OrderedUnits::by_event).
class CertainUnits {
 public:
  CertainUnits(const OrderedUnits& in, const AccessIndex& accesses, const ThreadLists& lists);

  const std::optional<std::vector<Edge>>& cycle() const { return cycle_; }
  const std::vector<Edge>& edges() const { return edges_; }  // between units
  // A place for each unit in an order that keeps these edges and `more`, between units, too; empty:
  // there is none.
  std::vector<uint32_t> places(UnitOrder order, std::span<const Edge> more = {}) const;

 private:
  OrderedUnits in_;
  const AccessIndex& accesses_;
  std::vector<Edge> edges_;
  std::optional<std::vector<Edge>> cycle_;
};

}  // namespace tsomon
