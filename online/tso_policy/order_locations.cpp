#include "online/tso_policy/order_locations.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {

LocationId OrderLocations::find_slowly(const Event& event) {
  const LocationId id = index_.find_or_add(event.address, event.size);
  if (id >= locations_.size()) {
    locations_.resize(id + 1);
    releases_.resize(id + 1);
  }
  return id;
}

// The newest own store that overlaps: the load may be forwarded from it, or waits for it.
uint64_t OrderLocations::find_source(const OrderEvent& now) {
  if (const Location& here = locations_[now.location];
      now.others.empty() && here.owner == now.event->thread && !here.records.empty()) {
    // The last access is that store, or a load that may have been forwarded from it.
    const uint64_t store = here.records.end()[-1].store;
    return store > now.thread->drained ? store : 0;
  }
  uint64_t newest = 0;
  LocationId from = LocationTable::kNone;
  const auto look = [&](LocationId where) {
    for (const Record& record : locations_[where].records) {
      if (record.thread == now.event->thread && record.store > newest &&
          record.store > now.thread->drained && record.kind != EventKind::kRead) {
        newest = record.store;
        from = where;
      }
    }
  };
  look(now.location);
  for (const LocationId other : now.others) {
    look(other);
  }
  if (newest == 0) {
    return 0;
  }
  if (contains(index_.key(from), index_.key(now.location))) {
    return newest;
  }
  threads_.commit(*now.thread, newest, now.hi);
  return 0;
}

// ---- Conflicts

void OrderLocations::link_record(const Record& record, const OrderEvent& now, EdgeKind kind) {
  graph_.add_directed(record.unit, now.unit, kind,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        assign(target, *now.event, now.index);
                        assign(source, *now.event, record.index);
                        source.location = record.location;
                        source.thread = record.thread;
                        source.kind = record.kind;
                      });
}

// The index of the latest release that was certainly over, if it is another thread's.
uint64_t OrderLocations::lock_source(const OrderEvent& now, const Location& location) {
  const Record* source = nullptr;
  for (const Record& record : location.records) {
    if (record.kind == EventKind::kRelease && record.hi < now.lo && !now.late && !gone(record) &&
        (source == nullptr || record.hi >= source->hi)) {
      source = &record;
    }
  }
  if (source == nullptr || source->thread == now.event->thread) {
    return kNoRecord;
  }
  for (const ReleaseClock& release : releases_[now.location]) {
    if (release.index == source->index) {
      now.thread->clock.join(release.clock);
    }
  }
  if (OrderThread* const thread = threads_.find(source->thread); thread != nullptr) {
    threads_.mark_visible(*thread, source->store, now.hi);
  }
  return source->index;
}

inline void OrderLocations::conflict(const Record& record, const OrderEvent& now, bool writes,
                                     bool is_source, bool* in_order) {
  if (!record.writes && !writes) {
    return;
  }
  if (!is_source && by_locks(record, now)) {
    return;  // a chain of releases and acquisitions lies between them
  }
  if (is_source || visible(record, now)) {
    link_record(record, now, EdgeKind::kConflict);
    return;
  }
  *in_order = false;
  graph_.add_undirected(record.unit, now.unit, record.several);
}

// What the record of the event in hand may take the place of.
inline void OrderLocations::look_at_own(Record& record, const OrderEvent& now,
                                        const Location& location, bool writes, OwnRecords* own) {
  if (record.unit == now.unit && record.writes == writes) {
    own->several = true;
    if (!covered(record, location) && stands_for(record, now)) {
      own->same = &record;
    }
  }
  if ((kind_mask(record.kind) & kinds::kLocks) != 0 || !is_visible(record)) {
    return;
  }
  Record*& latest = record.writes ? own->visible_store : own->visible_load;
  if (latest == nullptr) {
    latest = &record;
  } else if (record.index > latest->index) {
    own->superseded = latest;
    latest = &record;
  } else {
    own->superseded = &record;
  }
  if (own->visible_store != nullptr && own->visible_load != nullptr &&
      own->visible_load->index < own->visible_store->index) {
    own->superseded = own->visible_load;
  }
}

// The edges to the event in hand from many accesses, without those that follow from others.
//
// The stores of a thread (and its locked operations) are ordered, and so is every access of the
// thread before a later store; so are its loads, and those of its loads that may be forwarded. So
// of the accesses that come before the event those that a later store of their thread precedes need
// no edge, nor loads before a later one of their kind: there is a path through the latest. Of
// stores whose order is open the first and the last are enough: with s1 -> ... -> sn directed, an
// undirected edge to each of s1 and sn puts them all and the event on one cycle as soon as there
// are two, as would one to every s, and each of them is reached, both ways, from the event and from
// one another; a cycle that uses an edge to some s in between exists with one of these instead. The
// same holds of loads. Of the own thread all come before the event, in one line.
void OrderLocations::conflicts_of_many(const Record* begin, const Record* end,
                                       const OrderEvent& now, bool writes, uint64_t source,
                                       bool* in_order) {
  spend(4 * static_cast<uint64_t>(end - begin));
  const ThreadId thread = now.event->thread;
  chains_.resize(threads_.size());
  for (const Record* at = begin; at != end; ++at) {
    chains_[at->thread] = {};
  }
  const Record* forwarding = nullptr;
  for (const Record* at = begin; at != end; ++at) {
    Chain* const chain = chains_[at->thread].of(*at);
    if (at->thread == thread) {
      if ((now.roles & kStore) == 0 && at->store > now.thread->drained &&
          (forwarding == nullptr || at->index > forwarding->index)) {
        forwarding = at;
      }
    } else if (chain != nullptr && visible(*at, now)) {
      chain->visible = std::max(chain->visible, at->index + 1);
    } else if (chain != nullptr && at->index != source && !by_locks(*at, now)) {
      chain->add_open(*at);
    }
  }
  if (forwarding != nullptr && forwarding->unit != now.unit) {
    link_record(*forwarding, now, EdgeKind::kProgramOrder);
  }
  for (const Record* at = begin; at != end; ++at) {
    if (at->thread == thread) {
      continue;
    }
    Chains& chains = chains_[at->thread];
    const Chain* const chain = chains.of(*at);
    const bool needed = visible(*at, now)
                            ? at->index + 1 >= chains.stores.visible &&
                                  (chain == nullptr || at->index + 1 >= chain->visible)
                            : chain == nullptr || !chain->is_between(*at);
    if (at->index == source || needed) {
      conflict(*at, now, writes, at->index == source, in_order);
    }
  }
}

// One pass over the records: those of units that are gone or that a visible store stands for drop
// out, the others make edges.
template <uint8_t kStaticRoles, bool kHere>
inline void OrderLocations::conflicts(const OrderEvent& now, Location& location, uint64_t source,
                                      bool* in_order, OwnRecords* own) {
  const bool stores = has<kStaticRoles>(now.roles, kStore);
  const bool writes = has<kStaticRoles>(now.roles, kWrite);
  uint64_t dropped = 0;  // records with smaller indices
  if (location.cover != 0 &&
      threads_.visible(location.cover_thread, location.cover_hi, location.cover_store, now)) {
    dropped = std::exchange(location.cover, 0);
  }
  const ThreadId thread = now.event->thread;
  const uint16_t* const generations = graph_.generations();
  Record* const begin = location.records.begin();
  Record* const end = location.records.end();
  Record* kept = begin;
  for (Record* at = begin; at != end; ++at) {
    *kept = *at;
    kept += at->generation == generations[at->unit] && at->index >= dropped ? 1 : 0;
  }
  location.records.truncate(static_cast<size_t>(kept - begin));
  const bool many = kept - begin > static_cast<ptrdiff_t>(options_.tuning.edge_reduction_above);
  if (many) {
    conflicts_of_many(begin, kept, now, writes, source, in_order);
  }
  for (Record* at = begin; at != kept; ++at) {
    const bool foreign = at->thread != thread;
    if (many) {
      // Done.
    } else if (foreign) {
      conflict(*at, now, writes, at->index == source, in_order);
    } else if (!stores && at->store > now.thread->drained && at->unit != now.unit) {
      // All but a load after a store that may still be in the buffer follows from other edges.
      link_record(*at, now, EdgeKind::kProgramOrder);
    }
    if (kHere) {
      own->others = own->others || foreign || (kind_mask(at->kind) & kinds::kLocks) != 0;
      if (!foreign && !has<kStaticRoles>(now.roles, kLock)) {
        look_at_own(*at, now, location, writes, own);
      }
    }
  }
}

template <uint8_t kStaticRoles>
inline void OrderLocations::record(const OrderEvent& now, Location& location, bool in_order,
                                   const OwnRecords& own) {
  const bool writes = has<kStaticRoles>(now.roles, kWrite);
  auto& records = location.records;
  Record* mine = own.same != nullptr ? own.same : own.superseded;
  if (mine == nullptr) {
    mine = &records.add();
  }
  remember(now, writes, own.several, location, *mine);
  location.owner = own.others || has<kStaticRoles>(now.roles, kLock) ? kNoOwner : now.event->thread;
  if (writes && in_order && records.size() > 1) {
    cover_earlier(now, location);
  }
  if (records.size() > location.prune_at) {
    prune(location);
  }
}

// So that the next acquisition knows what came before.
void OrderLocations::remember_release(const OrderEvent& now) {
  auto& releases = releases_[now.location];
  if (releases.size() > 1) {
    std::rotate(releases.begin(), releases.begin() + 1, releases.end());
  } else {
    releases.emplace_back();
  }
  ReleaseClock& release = releases.back();
  release.index = now.index;
  threads_.trim_clock(*now.thread);
  release.clock = now.thread->clock;
  release.clock.raise(now.event->thread, now.thread->stores);
}

template <uint8_t kStaticRoles>
void OrderLocations::access_fully(const OrderEvent& now, Location& location) {
  bool in_order = !now.late;
  OwnRecords own;
  conflicts<kStaticRoles, true>(
      now, location,
      has<kStaticRoles>(now.roles, kAcquires) ? lock_source(now, location) : kNoRecord, &in_order,
      &own);
  for (const LocationId other : now.others) {
    bool in_order_there = true;
    conflicts<kStaticRoles, false>(now, locations_[other], kNoRecord, &in_order_there, nullptr);
  }
  record<kStaticRoles>(now, location, in_order, own);
  if (has<kStaticRoles>(now.roles, kRare)) {
    remember_release(now);
  }
}

template void OrderLocations::access_fully<0>(const OrderEvent& now, Location& location);
template void OrderLocations::access_fully<kLoadRoles>(const OrderEvent& now, Location& location);
template void OrderLocations::access_fully<kStoreRoles>(const OrderEvent& now, Location& location);

}  // namespace tsomon
