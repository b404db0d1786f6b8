#include "online/graph/value_order.h"

#include <algorithm>

#include "tso/check/analysis_budget.h"
#include "tso/model/location_table.h"
#include "tso/model/relation.h"
#include "tso/order/event_graph.h"
#include "tso/order/refinement.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// The place of its unit for every event; kNone: it belongs to none of them.
std::vector<uint32_t> places_of_events(const Trace& trace, const std::vector<uint64_t>& index,
                                       std::vector<PlacedUnit> units) {
  const auto begin_of = [](const PlacedUnit& placed) {
    return std::pair(placed.unit.thread, placed.unit.first);
  };
  std::sort(units.begin(), units.end(),
            [&](const PlacedUnit& a, const PlacedUnit& b) { return begin_of(a) < begin_of(b); });
  std::vector<uint32_t> places(trace.events.size(), kNone);
  for (size_t e = 0; e < places.size(); ++e) {
    const std::pair at{trace.events[e].thread, index[e]};
    const auto behind = std::partition_point(
        units.begin(), units.end(), [&](const PlacedUnit& unit) { return begin_of(unit) <= at; });
    if (behind == units.begin() || !is(trace.events[e], kinds::kNodes)) {
      continue;
    }
    const PlacedUnit& last = *(behind - 1);
    if (last.unit.thread == at.first && at.second <= last.unit.last) {
      places[e] = last.place;
    }
  }
  return places;
}

// `index`: of the events, in the input.
std::optional<ValueOrder> order_of(const Trace& trace, const std::vector<uint64_t>& index,
                                   std::vector<PlacedUnit> units, const RelationOptions& relation,
                                   uint64_t max_undirected) {
  RelationOptions options = relation;
  options.model = MemoryModel::kTso;
  options.order = TraceOrder::kIssue;
  const LocationTable locations(trace);
  const Relation by_clock(trace, locations, options);
  const AccessIndex accesses(by_clock);
  const auto refined = refine(by_clock, accesses, {true, max_undirected, {}});
  if (!refined || !refined->complete || refined->values_contradict || refined->locks_contradict) {
    return std::nullopt;
  }
  const std::vector<uint32_t> place = places_of_events(trace, index, std::move(units));
  const auto between_units = [&](uint32_t e, uint32_t f) {
    return place[e] != kNone && place[f] != kNone && place[e] != place[f];
  };
  ValueOrder known;
  for (const Edge& edge : refined->undirected) {
    if (between_units(edge.from, edge.to)) {
      known.edges.push_back({place[edge.from], place[edge.to], true});
      known.beyond_clock.emplace_back(std::minmax(place[edge.from], place[edge.to]));
    }
  }
  std::vector<uint32_t> last_from;  // by place
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    for (const uint32_t f : refined->order.edges().successors(e)) {
      if (!between_units(e, f)) {
        continue;
      }
      last_from.resize(std::max<size_t>(last_from.size(), place[f] + 1), kNone);
      if (last_from[place[f]] != place[e]) {
        last_from[place[f]] = place[e];
        known.edges.push_back({place[e], place[f], false});
      }
      if (by_clock.between(e, f) != Order::kBefore) {
        known.beyond_clock.emplace_back(std::minmax(place[e], place[f]));
      }
    }
  }
  return known;
}

}  // namespace

std::optional<ValueOrder> value_order(EventHistory::Slice&& slice, std::vector<LockWord> lock_words,
                                      std::vector<PlacedUnit> units,
                                      const RelationOptions& relation, uint64_t max_undirected) {
  if (!slice.all_stores) {
    return std::nullopt;
  }
  Trace trace;
  static_cast<EventBlock&>(trace) = std::move(slice.events);
  trace.symbols.initial_zero = false;
  trace.pending_prefix = slice.pending_prefix;
  trace.lock_words = std::move(lock_words);
  if (!trace.has_read_values()) {
    return std::nullopt;
  }
  std::optional<ValueOrder> known;
  const auto limit = within(kAnalysisBudget.of(trace.events.size()), [&] {
    const auto found = order_of(trace, slice.index, units, relation, max_undirected);
    const WorkPause outside;
    known = std::optional<ValueOrder>(found);  // outside of the heap that ends
  });
  if (limit == WorkLimit::kStopped) {
    throw WorkEnded(WorkLimit::kStopped);
  }
  return known;
}

}  // namespace tsomon
