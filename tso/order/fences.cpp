#include "tso/order/fences.h"

#include <algorithm>

namespace tsomon {
namespace {

constexpr uint32_t kNever = Relation::kNever;
constexpr uint32_t kPlain = kind_mask(EventKind::kRead) | kind_mask(EventKind::kWrite);

// By location: whether more than one thread accesses bytes of it.
std::vector<bool> shared_locations(const Relation& relation, const AccessIndex& accesses) {
  std::vector<bool> shared(relation.locations().size(), false);
  for (LocationId here = 0; here < shared.size(); ++here) {
    if (accesses.at(here).empty()) {
      continue;
    }
    const ThreadId owner = accesses.at(here).front().thread;
    for (const LocationId other : relation.locations().overlapping(here)) {
      const auto lists = accesses.at(other);
      shared[here] = shared[here] ||
                     std::any_of(lists.begin(), lists.end(),
                                 [&](const ThreadAccesses& list) { return list.thread != owner; });
    }
  }
  return shared;
}

}  // namespace

Fences::Fences(const Relation& relation, const AccessIndex& accesses, const UnitTable& units)
    : missing_after_(units.size(), kNever),
      forwarded_from_(units.size(), UnitTable::kNone),
      relevant_(relation.trace().events.size(), false) {
  const auto& events = relation.trace().events;
  const std::vector<bool> shared = shared_locations(relation, accesses);
  for (uint32_t e = 0; e < events.size(); ++e) {
    const LocationId location = relation.locations().of_event(e);
    // Without the order of threads, their starts and ends are in no certain order with it.
    const bool is_private =
        relation.options().thread_order && is(events[e], kPlain) && !shared[location];
    relevant_[e] = is(events[e], kinds::kNodes) && !is_private;
  }
  // Backwards, so that what the thread does after a unit is known: by thread, the unit of its next
  // event, the first event of that unit, and the first event after it.
  struct Next {
    UnitId unit = UnitTable::kNone;
    uint32_t first = kNever;
    uint32_t after = kNever;
  };
  std::vector<Next> next;
  for (uint32_t e = static_cast<uint32_t>(events.size()); e-- > 0;) {
    const UnitId unit = units.of_event(e);
    if (!relevant_[e] || unit == UnitTable::kNone) {
      continue;
    }
    next.resize(std::max<size_t>(next.size(), events[e].thread + 1));
    Next& later = next[events[e].thread];
    if (later.unit != unit) {
      later = {unit, e, later.first};
    }
    later.first = e;
    if (const uint32_t source = relation.source(e);
        source != kNever && units.of_event(source) != unit) {
      forwarded_from_[unit] = units.of_event(source);
    }
    if (!relation.is_store(e) || missing_after_[unit] != kNever) {
      continue;
    }
    const uint32_t by = relation.visible_by(e);
    const bool in_time =
        by != kNever &&
        (units.of_event(by) == unit ||
         (later.after != kNever && relation.position(by) <= relation.position(later.after)));
    if (!in_time) {
      missing_after_[unit] = e;
    }
  }
}

}  // namespace tsomon
