#include "offline/check/thread_lists.h"

#include <algorithm>
#include <numeric>

#include "tso/support/flat_map.h"
#include "tso/support/nearby.h"
#include "tso/support/work.h"

namespace tsomon {

ThreadLists::ThreadLists(const Relation& relation, const AccessIndex& accesses,
                         const UnitTable& units, bool by_event) {
  number_units(relation, units, by_event);
  sort_units(relation, by_event);
  make_lists(relation, accesses);
  find_shared(relation, accesses);
}

void ThreadLists::number_units(const Relation& relation, const UnitTable& units, bool by_event) {
  const auto& events = relation.trace().events;
  unit_.assign(events.size(), kEnd);
  kind_.resize(relation.threads());
  for (ThreadId thread = 0; thread < relation.threads(); ++thread) {
    UnitId last = UnitTable::kNone;
    for (const uint32_t e : relation.of_thread(thread)) {
      spend(4);
      if (!is(events[e], kinds::kNodes)) {
        continue;
      }
      const UnitId unit = by_event ? e : units.of_event(e);
      if (kind_[thread].empty() || unit != last) {
        kind_[thread].push_back(kRelaxed | kLoads);
        last = unit;
      } else {
        kind_[thread].back() |= kSeveral;
      }
      unit_[e] = static_cast<uint32_t>(kind_[thread].size() - 1);
    }
  }
}

void ThreadLists::sort_units(const Relation& relation, bool by_event) {
  const auto& events = relation.trace().events;
  for (uint32_t e = 0; e < unit_.size(); ++e) {
    if (unit_[e] == kEnd) {
      continue;
    }
    uint8_t& kind = kind_[events[e].thread][unit_[e]];
    if (by_event) {
      kind = 0;
      continue;
    }
    const bool load = is(events[e], kinds::kLoadLike);
    kind &= static_cast<uint8_t>(load ? kSeveral | kLoads | kRelaxed : kSeveral | kRelaxed);
    if (!relation.is_store(e) && relation.source(e) == Relation::kNever) {
      kind &= static_cast<uint8_t>(~kRelaxed);
    }
  }
  full_from_.resize(kind_.size());
  for (ThreadId thread = 0; thread < kind_.size(); ++thread) {
    find_full(relation, thread);
  }
}

// From the last event of the thread to the first.
void ThreadLists::find_full(const Relation& relation, ThreadId thread) {
  const auto count = static_cast<uint32_t>(kind_[thread].size());
  std::vector<uint32_t>& full = full_from_[thread];
  full.assign(count, count);
  const LocationTable& locations = relation.locations();
  // The units of the next load, and of the next one in another unit; only units that lead on by
  // themselves.
  struct Loads {
    uint32_t unit = kEnd;
    uint32_t later = kEnd;
  };
  FlatMap<LocationId, Loads> loads;
  uint32_t later = count;  // where the later units that are entered by all lead
  uint32_t current = count;
  const auto of_thread = relation.of_thread(thread);
  for (size_t at = of_thread.size(); at-- > 0;) {
    const uint32_t e = of_thread[at];
    const uint32_t unit = unit_[e];
    if (unit == kEnd) {
      continue;
    }
    if (unit != current) {
      later = current < count && entered_by_all(thread, current) ? std::min(later, full[current])
                                                                 : later;
      current = unit;
      full[unit] = leads_to_all(thread, unit) ? unit : later;
    }
    if (const uint32_t by = relation.visible_by(e); by != Relation::kNever) {
      full[unit] = std::min(full[unit], std::max(unit, unit_[by]));
    }
    const LocationId here = locations.of_event(e);
    if (here == LocationTable::kNone) {
      continue;
    }
    // A store, or what was forwarded, comes before the later loads of the same bytes.
    if (!relation.is_read(e) || relation.source(e) != Relation::kNever) {
      spend(locations.overlapping(here).size());
      for (const LocationId other : locations.overlapping(here)) {
        if (const Loads* const next = loads.find(other)) {
          full[unit] = std::min(full[unit], next->unit > unit ? next->unit : next->later);
        }
      }
    }
    if (relation.is_read(e) && leads_to_all(thread, unit)) {
      Loads& next = loads[here];
      next = next.unit == unit ? next : Loads{unit, next.unit};
    }
  }
}

void ThreadLists::make_lists(const Relation& relation, const AccessIndex& accesses) {
  list_of_.assign(unit_.size(), kEnd);
  place_.assign(unit_.size(), kEnd);
  // Each list of the index makes two: what may be forwarded is apart.
  lists_.resize(2 * static_cast<size_t>(accesses.lists()));
  for (uint32_t number = 0; number < accesses.lists(); ++number) {
    for (const uint32_t e : accesses.list(number)) {
      const uint32_t list = first_of(number) + (relation.source(e) == Relation::kNever ? 0 : 1);
      list_of_[e] = list;
      place_[e] = static_cast<uint32_t>(lists_[list].events.size());
      lists_[list].thread = relation.trace().events[e].thread;
      lists_[list].events.push_back(e);
    }
  }
  const bool constrained = relation.options().semantics == Semantics::kExact &&
                           relation.options().order == TraceOrder::kIssue;
  for (uint32_t number = 1; constrained && number < lists_.size(); number += 2) {
    List& list = lists_[number];
    list.issued = earliest_from(list.events, [&](uint32_t e) { return relation.hi(e); });
  }
  for (List& list : lists_) {
    const size_t count = list.events.size();
    list.full_from.resize(count);
    list.next_entered.resize(count);
    bool all_entered = true;
    uint32_t full = kEnd;
    uint32_t next = kEnd;
    for (size_t i = count; i-- > 0;) {
      const uint32_t unit = unit_[list.events[i]];
      full = std::min(full, full_from_[list.thread][unit]);
      if (entered_by_all(list.thread, unit)) {
        next = static_cast<uint32_t>(i);
      } else {
        all_entered = false;
      }
      list.full_from[i] = full;
      list.next_entered[i] = next;
    }
    if (all_entered) {
      list.next_entered = {};
    }
  }
}

void ThreadLists::find_shared(const Relation& relation, const AccessIndex& accesses) {
  for (List& list : lists_) {
    list.shared = !list.events.empty() &&
                  any_conflicting_list(
                      relation, accesses, list.events.front(),
                      [&](uint32_t theirs, ThreadId) { return !accesses.list(theirs).empty(); });
  }
  thread_begin_.assign(kind_.size() + 1, 0);
  for (const List& list : lists_) {
    thread_begin_[list.thread + 1] += list.shared ? 1 : 0;
  }
  std::partial_sum(thread_begin_.begin(), thread_begin_.end(), thread_begin_.begin());
  by_thread_.resize(thread_begin_.back());
  std::vector<uint32_t> next(thread_begin_.begin(), thread_begin_.end() - 1);
  for (uint32_t i = 0; i < lists_.size(); ++i) {
    if (lists_[i].shared) {
      by_thread_[next[lists_[i].thread]++] = i;
    }
  }
}

uint32_t ThreadLists::first_from(uint32_t list, uint32_t unit, uint32_t* near) const {
  const std::vector<uint32_t>& events = lists_[list].events;
  const auto size = static_cast<uint32_t>(events.size());
  const uint32_t at =
      first_without(size, near, [&](uint32_t place) { return unit_[events[place]] < unit; });
  return at == size ? kEnd : at;
}

uint32_t ThreadLists::last_leading_to(uint32_t list, uint32_t unit, uint32_t* near) const {
  const std::vector<uint32_t>& events = lists_[list].events;
  const uint32_t behind = first_without(static_cast<uint32_t>(events.size()), near,
                                        [&](uint32_t at) { return unit_[events[at]] <= unit; });
  if (behind == 0) {
    return kEnd;
  }
  const uint32_t last = behind - 1;
  if (unit_[events[last]] == unit || entered_by_all(lists_[list].thread, unit)) {
    return last;
  }
  const std::vector<uint32_t>& full = lists_[list].full_from;
  uint32_t leading = last;
  first_without(last + 1, &leading, [&](uint32_t at) { return full[at] <= unit; });
  return leading == 0 ? kEnd : leading - 1;
}

uint32_t ThreadLists::first_entered_from(uint32_t list, uint32_t unit, uint32_t* near) const {
  const uint32_t first = first_from(list, unit, near);
  return first == kEnd || lists_[list].next_entered.empty() ? first
                                                            : lists_[list].next_entered[first];
}

}  // namespace tsomon
