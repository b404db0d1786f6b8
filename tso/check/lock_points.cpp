#include "tso/check/lock_points.h"

#include <algorithm>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// Where in its thread a unit may hold all locks that matter.
struct LockPoint {
  uint32_t begin = 0;  // events
  uint32_t end = 0;
};

}  // namespace

bool locked_in_two_phases(const Relation& relation, const UnitTable& units,
                          const LockExclusion& locks, const Reachability& order,
                          const ClassGraph& classes, const std::vector<uint32_t>& edges) {
  FlatMap<UnitId, LockPoint> points;
  const auto narrow = [&](UnitId unit, const LockExclusion::Section& section) {
    LockPoint& point =
        *points.try_emplace(unit, {units[unit].first_event, units[unit].last_event}).first;
    const auto position = [&](uint32_t e) { return relation.position(e); };
    point.begin = std::max(point.begin, section.acquisition,
                           [&](uint32_t e, uint32_t f) { return position(e) < position(f); });
    point.end = std::min(point.end, section.release,
                         [&](uint32_t e, uint32_t f) { return position(e) < position(f); });
    return position(point.begin) <= position(point.end);
  };
  spend(8 * edges.size());
  std::vector<Edge> by_time;  // directed, between units
  for (const uint32_t i : edges) {
    const MixedEdge& edge = classes.edges()[i];
    const Edge& events = classes.events_behind(i);
    if (units[edge.from].thread == units[edge.to].thread) {
      continue;
    }
    if (const auto common = locks.common_lock(events.from, events.to)) {
      if (!narrow(edge.from, common->first) || !narrow(edge.to, common->second)) {
        return false;
      }
    } else if (edge.undirected) {
      return false;
    } else {
      by_time.push_back({edge.from, edge.to});
    }
  }
  const auto acquisition = [&](UnitId unit) {
    const LockPoint* const point = points.find(unit);
    return point != nullptr && locks.is_acquisition(point->begin) ? point->begin : Relation::kNever;
  };
  return std::all_of(by_time.begin(), by_time.end(), [&](const Edge& edge) {
    const uint32_t from = acquisition(edge.from);
    const uint32_t to = acquisition(edge.to);
    return from != Relation::kNever && to != Relation::kNever && order.reaches(from, to);
  });
}

}  // namespace tsomon
