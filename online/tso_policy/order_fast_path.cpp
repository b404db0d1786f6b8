// Most accesses meet nothing of other threads. What follows does for them what conflicts() and
// record() would, for loads and stores of locations that overlap with no other one.
//
// **Alone.** All accesses that the location remembers are of the thread of the event in hand and
// none is of a lock, or they are of units that are all gone (and the location is as good as new).
// No conflict makes an edge; only loads of what other units have in the store buffer do. The event
// is remembered, and what a visible access of the thread stands for goes: a store for everything
// before it, a load for loads. Records of units that are gone may stay, as long as nothing takes
// them for the units that have their places now.
//
// Of these, the ones of an open unit that make no edge in their thread either do not even come here
// when they are the first of their unit at the location and there is room: access_plainly(), in
// order_locations.h, remembers them. As long as all records are of one thread the latest one tells
// whether the unit has been here, for its units follow one another.
//
// **Among loads.** All accesses that the location remembers are loads, and no store covers any: the
// event, a load from memory, has no edge from any of them. It takes the place of what conflicts()
// and look_at_own() would let it replace: a record of a unit that is gone, the older of two visible
// loads of its thread, or one of its unit that it stands for.
//
// A load need not be remembered at all when the latest record of its thread there is a load of the
// same unit, from memory, with the same `hi` and `clock` (no store was issued in between). Whether
// a later store is directed from a load, open, or ordered by locks depends on thread, `hi`, `store`
// and `clock` alone, and whether a record is covered or pruned on its index in comparison with
// other records: no record of the thread lies between the two, and those of other threads are
// loads, which cover nothing. So both would always meet the same fate, with edges between the same
// units. The one difference between one access and two is `several`, which is set.
#include <algorithm>

#include "online/tso_policy/order_locations.h"

namespace tsomon {

inline bool OrderLocations::is_repeated_load(const Record& latest, const OrderEvent& now) const {
  return latest.unit == now.unit && latest.kind == EventKind::kRead && latest.hi == now.hi &&
         latest.store == 0 && now.store == 0 && latest.clock == now.thread->stores + 1 &&
         !gone(latest);
}

// Drops what a visible access stands for, of accesses of one thread.
void OrderLocations::drop_visible(OrderThread& thread, Location& location) {
  auto& records = location.records;
  const uint64_t committed = threads_.visible_stores(thread);
  uint64_t latest = 0;  // visible access, and store
  uint64_t latest_store = 0;
  for (const Record& record : records) {
    const bool visible = (record.hi < threads_.now()) & (record.store <= committed);
    latest = std::max(latest, visible ? record.index : 0);
    latest_store = std::max(latest_store, (visible & record.writes) ? record.index : 0);
  }
  Record* kept = records.begin();
  for (const Record& record : records) {  // copied in any case: no branch
    const bool stays = record.index >= (record.writes ? latest_store : latest);
    *kept = record;
    kept += stays ? 1 : 0;
  }
  records.truncate(static_cast<size_t>(kept - records.begin()));
  records.shrink();
}

// Where there is no more room in place, or the unit has been here before, or something is still in
// the buffer. There may be as many records as stores in the buffer: only the last ones are looked
// at.
void OrderLocations::access_alone(const OrderEvent& now, bool writes, Location& location) {
  auto& records = location.records;
  Record* place = nullptr;
  bool several = false;
  // An empty one may remember a unit of long ago that had the same node.
  if (location.last_unit == now.unit && !records.empty()) {
    Record* const last = records.end() - 1;
    if (!writes && is_repeated_load(*last, now)) {
      last->several = true;
      ++graph_.statistics().quiet;
      return;
    }
    for (Record* at = records.end(); at != records.begin() && (at - 1)->unit == now.unit; --at) {
      Record& record = at[-1];
      if (record.writes == writes && !gone(record)) {
        several = true;
        place = !covered(record, location) && stands_for(record, now) ? &record : nullptr;
        break;
      }
    }
  }
  if (!writes && now.store != 0 && !records.empty()) {
    // The latest that waits for a store stands for all of them.
    const Record& last = records.end()[-1];
    if (last.store > now.thread->drained && last.unit != now.unit && !gone(last)) {
      link_record(last, now, EdgeKind::kProgramOrder);
    }
  }
  if (place == nullptr) {
    if (records.size() == kInPlace) {
      drop_visible(*now.thread, location);
    } else if (records.size() >= location.prune_at) {
      prune(location);
      records.shrink();
    }
    place = &records.add();
  }
  remember(now, writes, several, location, *place);
  if (writes && records.size() > 1) {
    cover_earlier(now, location);
  }
}

// Of a load. False: a record is none of a load, or there are so many that they should be looked
// through.
inline bool OrderLocations::remember_load(const OrderEvent& now, Location& location) {
  auto& records = location.records;
  const ThreadId thread = now.event->thread;
  Record* latest = nullptr;
  Record* visible = nullptr;  // the latest
  Record* place = nullptr;
  Record* same = nullptr;
  bool several = false;
  for (Record& record : records) {
    if (record.kind != EventKind::kRead) {
      return false;
    }
    if (gone(record)) {
      place = &record;
      continue;
    }
    if (record.thread != thread) {
      continue;
    }
    latest = latest == nullptr || latest->index < record.index ? &record : latest;
    if (record.unit == now.unit) {
      several = true;
      same = stands_for(record, now) ? &record : same;
    }
    if (is_visible(record)) {
      if (visible == nullptr) {
        visible = &record;
      } else {
        const bool later = record.index > visible->index;
        place = later ? visible : &record;
        visible = later ? &record : visible;
      }
    }
  }
  ++graph_.statistics().quiet;
  if (latest != nullptr && is_repeated_load(*latest, now)) {
    latest->several = true;
    return true;
  }
  place = same != nullptr ? same : place;
  if (place == nullptr) {
    if (records.size() >= location.prune_at) {
      --graph_.statistics().quiet;
      return false;
    }
    place = &records.add();
  }
  remember(now, false, several, location, *place);
  location.owner = kNoOwner;
  return true;
}

// Whether that was all that there is to do for the access.
template <uint8_t kStaticRoles>
inline bool OrderLocations::access_shortly(const OrderEvent& now, Location& location) {
  constexpr bool kWrites = has<kStaticRoles>(0, kWrite);
  auto& records = location.records;
  if (location.owner != now.event->thread) {
    if (location.after > oldest_) {
      return kStaticRoles == kLoadRoles && now.store == 0 && location.cover == 0 &&
             remember_load(now, location);
    }
    location.cover = 0;
    location.owner = now.event->thread;
    remember(now, kWrites, false, location, records.put(0));
    ++graph_.statistics().alone;
    return true;
  }
  ++graph_.statistics().alone;
  if (location.last_unit == now.unit || records.size() >= kInPlace ||
      (!kWrites && now.store != 0)) {
    access_alone(now, kWrites, location);
    return true;
  }
  remember(now, kWrites, false, location, records.add());
  if (kWrites) {
    cover_earlier(now, location);
  }
  return true;
}

void OrderLocations::access_otherwise(const Event& event, uint64_t index, int64_t hi, bool writes,
                                      OrderThread& thread, LocationId id) {
  OrderEvent now;
  now.event = &event;
  now.index = index;
  now.lo = event.lo;
  now.hi = hi;
  now.thread = &thread;
  now.unit = thread.unit;
  now.location = id;
  now.roles = writes ? kStoreRoles : kLoadRoles;
  now.store = writes ? thread.stores : 0;
  Location& location = locations_[id];
  if (location.owner == event.thread) {
    ++graph_.statistics().alone;
    access_alone(now, writes, location);
  } else if (writes) {
    access<kStoreRoles>(now);
  } else {
    access<kLoadRoles>(now);
  }
}

template <uint8_t kStaticRoles>
void OrderLocations::access(const OrderEvent& now) {
  Location& here = locations_[now.location];
  if (kStaticRoles != 0 && options_.tuning.fast_path && now.others.empty() && !now.late) {
    if (access_shortly<kStaticRoles>(now, here)) {
      return;
    }
  }
  access_fully<kStaticRoles>(now, here);
}

template void OrderLocations::access<0>(const OrderEvent& now);
template void OrderLocations::access<kLoadRoles>(const OrderEvent& now);
template void OrderLocations::access<kStoreRoles>(const OrderEvent& now);

}  // namespace tsomon
