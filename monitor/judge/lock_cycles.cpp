#include "monitor/judge/lock_cycles.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tso/check/cycle.h"
#include "tso/model/location_table.h"
#include "tso/model/relation.h"
#include "tso/model/units.h"

namespace tsomon {

bool LockCycles::is_one(const DetectedCycle& cycle) {
  return std::any_of(cycle.steps.begin(), cycle.steps.end(), [](const DetectedStep& step) {
    return orders_lock(event_of(step.from), event_of(step.to));
  });
}

void LockCycles::add(DetectedCycle cycle) {
  uint64_t closed = 0;
  std::vector<ThreadId> open;
  for (const DetectedStep& step : cycle.steps) {
    closed = std::max({closed, step.from.index, step.to.index});
    if (!step.unit.finished) {
      open.push_back(step.unit.thread);
    }
  }
  waiting_.push_back({std::move(cycle), closed, std::move(open)});
}

void LockCycles::follow(const EventBlock& block, uint64_t first_index, const EventCount& before) {
  if (waiting_.empty()) {
    return;
  }
  std::unordered_map<ThreadId, uint32_t> depths;  // of open units
  std::unordered_map<ThreadId, uint64_t> over;    // where the latest unit was
  for (size_t i = 0; i < block.events.size(); ++i) {
    const Event& event = block.events[i];
    const EventKind kind = event.kind();
    if (kind != EventKind::kUnitBegin && kind != EventKind::kUnitEnd && kind != EventKind::kWait) {
      continue;
    }
    uint32_t& depth = depths.try_emplace(event.thread, before.depth(event.thread)).first->second;
    depth += kind == EventKind::kUnitBegin ? 1 : 0;
    depth -= kind == EventKind::kUnitEnd && depth > 0 ? 1 : 0;
    if (kind == EventKind::kWait || depth == 0) {
      over[event.thread] = first_index + i;
    }
  }
  for (Waiting& waiting : waiting_) {
    waiting.open.erase(std::remove_if(waiting.open.begin(), waiting.open.end(),
                                      [&](ThreadId thread) {
                                        const auto at = over.find(thread);
                                        return at != over.end() && at->second >= waiting.closed;
                                      }),
                       waiting.open.end());
  }
}

std::optional<DetectedCycle> LockCycles::take(uint64_t events) {
  const auto ready = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.open.empty() || waiting_.size() > kMost || events == UINT64_MAX ||
           waiting.closed + kPatience < events;
  });
  if (ready == waiting_.end()) {
    return std::nullopt;
  }
  DetectedCycle cycle = std::move(ready->cycle);
  waiting_.erase(ready);
  return cycle;
}

namespace {

// The events of the units on the cycle, and of what a thread did between two steps of it.
std::vector<uint32_t> events_of(const DetectedCycle& cycle, const Trace& slice,
                                const std::vector<uint64_t>& index, const UnitTable& units) {
  const auto unit_of = [&](const DetectedAccess& access) -> const Unit* {
    const auto at = std::lower_bound(index.begin(), index.end(), access.index);
    if (at == index.end() || *at != access.index) {
      return nullptr;
    }
    const UnitId unit = units.of_event(static_cast<size_t>(at - index.begin()));
    return unit == UnitTable::kNone ? nullptr : &units[unit];
  };
  std::vector<uint32_t> events;
  for (const DetectedStep& step : cycle.steps) {
    const Unit* const first = unit_of(step.from);
    const Unit* const next = unit_of(step.to);
    if (first == nullptr || next == nullptr) {
      return {};
    }
    const uint32_t last =
        std::max(first->last_event, next->thread == first->thread ? next->last_event : 0);
    for (uint32_t e = first->first_event; e <= last; ++e) {
      if (slice.events[e].thread == first->thread && is(slice.events[e], kinds::kNodes)) {
        events.push_back(e);
      }
    }
    if (events.size() > 2 * LockCycles::kMostEvents) {
      return {};
    }
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  return events;
}

}  // namespace

std::vector<CycleEdge> cycle_of_data(const DetectedCycle& cycle, const Trace& slice,
                                     const std::vector<uint64_t>& index,
                                     const RelationOptions& options) {
  const UnitTable units(slice);
  const std::vector<uint32_t> events = events_of(cycle, slice, index, units);
  if (events.empty() || events.size() > LockCycles::kMostEvents) {
    return {};
  }
  std::vector<uint32_t> class_of(slice.events.size());
  for (const uint32_t e : events) {
    class_of[e] = units.of_event(e);
  }
  const LocationTable locations(slice);
  const Relation relation(slice, locations, options);
  const OrientationOracle open = [](uint32_t, uint32_t) { return Order::kNone; };
  std::vector<CycleEdge> found = shortest_cycle_among(relation, class_of, events, open);
  const bool of_data = std::none_of(found.begin(), found.end(), [&](const CycleEdge& edge) {
    return orders_lock(slice.events[edge.from], slice.events[edge.to]);
  });
  return of_data ? found : std::vector<CycleEdge>();
}

}  // namespace tsomon
