// The locations of the order policy: what each remembers of the accesses to it, and the edges
// between them and a new one.
//
// Source      Theory section 2 ("Different threads") and section 5: visible accesses are directed
//             to the new one, others undirected, unless a chain of lock releases and acquisitions
//             orders them.
// State       Per location and unit one record for its loads and one for its stores. Records that a
//             later visible access stands for are dropped, so their number is bounded by the
//             threads and by the stores that are not visible; beyond DetectorTuning::max_pending_stores
//             the oldest are evicted and counted in `evicted`.
// Length      One class, which the order policy calls for every access: its small functions are here to be inlined.
// Complexity  O(records of the location and of those that overlap with it).
// Files       order_fast_path.cpp: accesses that meet nothing of other threads;
//             order_locations.cpp: all others; order_pruning.cpp: what is forgotten, and when.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "online/structures/huge_pages.h"
#include "online/structures/inline_list.h"
#include "online/structures/location_index.h"
#include "online/structures/prune_schedule.h"
#include "online/tso_policy/order_threads.h"
#include "tso/model/lock_order.h"

namespace tsomon {

class OrderLocations {
 public:
  using Node = Policy::Node;

  OrderLocations(ConflictGraph& graph, OrderThreads& threads, const DetectorOptions& options)
      : graph_(graph), threads_(threads), options_(options) {}

  // Of an access; kNone for what is none, but that may find one as well, which is not to be used.
  LocationId find(const Event& event) {
    const LocationId id = index_.find_cheaply(event);
    return id != LocationTable::kNone || !is(event, kinds::kAccesses) ? id : find_slowly(event);
  }
  // Locations are spread over memory: their first cache line is asked for some events ahead, and
  // when it is there, the records that an access will look at.
  void prefetch(LocationId id, const Event& event) const {
    __builtin_prefetch(&locations_[id]);
    if (event.size != 0) {
      __builtin_prefetch(&index_.others(id));
    }
  }
  void prefetch_records(LocationId id) const {
    const auto& records = locations_[id].records;
    const auto* const begin = reinterpret_cast<const char*>(records.begin());
    __builtin_prefetch(begin);
    __builtin_prefetch(begin + kCacheLine);
    __builtin_prefetch(begin + records.size() * sizeof(Record));
  }
  std::span<const LocationId> others(LocationId id) const { return index_.others(id); }
  size_t size() const { return index_.size(); }

  // The newest own store that overlaps with the load in hand, which may be forwarded from it; 0 if
  // there is none, or the load has to wait for it.
  uint64_t find_source(const OrderEvent& now);
  // No other thread has an access that the event in hand has an edge from.
  template <uint8_t kStaticRoles>
  bool is_undisturbed(const OrderEvent& now) const {
    return is_undisturbed<kStaticRoles>(now, now.location) &&
           std::all_of(now.others.begin(), now.others.end(),
                       [&](LocationId other) { return is_undisturbed<kStaticRoles>(now, other); });
  }
  // The edges from other accesses to the one in hand, which is then remembered. Its unit, `store`
  // and its order in its thread are known.
  template <uint8_t kStaticRoles>
  void access(const OrderEvent& now);

  // access() of a load or store in a unit, not late and not forwarded, whose location overlaps with
  // no other. The thread has counted it.
  void access_plainly(const Event& event, uint64_t index, int64_t hi, bool writes,
                      OrderThread& thread, LocationId id) {
    Location& location = locations_[id];
    // As there: what cannot be foreseen is computed, not branched on.
    const bool own = location.owner == event.thread;
    const size_t size = location.records.size();
    const bool simple = (own & (location.last_unit != thread.unit) & (size < kInPlace)) |
                        (!own & (location.after <= oldest_));
    if (!simple) {
      access_otherwise(event, index, hi, writes, thread, id);
      return;
    }
    ++graph_.statistics().alone;
    const uint64_t store = writes ? thread.stores : 0;
    location.owner = event.thread;
    location.cover = own ? (writes ? index : location.cover) : 0;
    location.cover_hi = writes ? hi : location.cover_hi;
    location.cover_store = writes ? store : location.cover_store;
    location.cover_thread = writes ? event.thread : location.cover_thread;
    location.after = index + 1;
    location.last_unit = thread.unit;
    fill(location.records.put(own ? size : 0), event, index, hi, thread.unit, store,
         thread.stores + (writes ? 0 : 1), writes, false);
  }

  // Some are hardly in use any more.
  // Units of which an access that waits for a store was forgotten, since the last call.
  std::vector<Node> take_lost_accesses() { return std::exchange(lost_accesses_, {}); }
  bool many() const { return pace_.many(index_.size()); }
  // After a sweep of the graph. `next`: the index of the next event.
  void follow_units(uint64_t next);

 private:
  static constexpr Node kNone = ConflictGraph::kNone;
  static constexpr size_t kCacheLine = 64;
  static constexpr uint64_t kNoRecord = UINT64_MAX;
  static constexpr uint32_t kInPlace = 4;  // accesses that a location remembers
  static constexpr ThreadId kNoOwner = 0xFFFFFFFFU;

  // An access to a location: the only one of its kind by its unit, or the latest of those that
  // become visible together with it.
  struct Record {
    Node unit = kNone;
    ThreadId thread = 0;
    uint64_t index = 0;
    int64_t hi = 0;
    uint64_t store = 0;  // that must have committed for the access to be visible; 0: none
    uint64_t clock = 0;  // the store of its thread by which everything up to it is passed on
    uint32_t location = Event::kNoLocation;
    EventKind kind = EventKind::kRead;
    bool writes : 1 = false;
    bool several : 1 = false;  // stands for earlier accesses, too
    uint16_t generation = 0;   // of `unit`
  };
  // The first cache line says which of the ways an access takes; the records follow.
  struct alignas(kCacheLine) Location {
    // A store that came after all records with a smaller index: once it is visible, it stands for
    // them. 0: there is none.
    uint64_t cover = 0;
    uint64_t cover_store = 0;
    int64_t cover_hi = 0;
    ThreadId cover_thread = 0;
    uint32_t prune_at = 8;
    uint64_t after = 0;         // all records have smaller indices
    ThreadId owner = kNoOwner;  // all records are of this thread, and none is of a lock
    Node last_unit = kNone;     // of the latest record; of an owner's unit none is earlier
    InlineList<Record, kInPlace> records;  // in the order of their indices
  };
  static_assert(sizeof(Location) == 4 * kCacheLine);
  // Of one thread at one location; 0 is none, as is the first event of all.
  struct LatestVisible {
    uint64_t access = 0;
    uint64_t store = 0;
  };
  // Of one thread at one location, where there are many records: accesses that are ordered.
  struct Chain {
    uint64_t visible = 0;  // 1 + index of the latest that comes before the event in hand, or may be
                           // forwarded to it
    const Record* first_open = nullptr;
    const Record* last_open = nullptr;
    void add_open(const Record& record) {
      if (first_open == nullptr || record.index < first_open->index) {
        first_open = &record;
      }
      if (last_open == nullptr || record.index > last_open->index) {
        last_open = &record;
      }
    }
    bool is_between(const Record& record) const {
      return &record != first_open && &record != last_open;
    }
  };
  struct Chains {
    Chain stores;
    Chain loads;
    Chain forwarded;  // loads that may be
    // Nothing: of a reader lock.
    Chain* of(const Record& record) {
      return record.writes                     ? &stores
             : record.kind != EventKind::kRead ? nullptr
             : record.store == 0               ? &loads
                                               : &forwarded;
    }
  };
  struct ReleaseClock {
    uint64_t index = 0;
    StoreClock clock;
  };
  // Records of the thread of the event in hand at its location.
  struct OwnRecords {
    bool others = false;              // there are those of other threads, too, or of locks
    bool several = false;             // the unit has one of the same kind (load or store) already
    Record* same = nullptr;           // ... that the event may take the place of
    Record* visible_load = nullptr;   // the latest
    Record* visible_store = nullptr;  // the latest
    Record* superseded = nullptr;     // one that one of these two stands for
  };

  LocationId find_slowly(const Event& event);
  template <uint8_t kStaticRoles>
  bool is_undisturbed(const OrderEvent& now, LocationId where) const {
    const auto& records = locations_[where].records;
    return locations_[where].owner == now.event->thread ||
           std::none_of(records.begin(), records.end(), [&](const Record& record) {
             return record.thread != now.event->thread && !gone(record) &&
                    (record.writes || has<kStaticRoles>(now.roles, kWrite));
           });
  }
  // The end of the event in hand, for events on its location.
  int64_t end_here(const OrderEvent& now) const {
    return is_lock_by_start(*now.event) ? now.lo : now.hi;
  }
  // Whether the record came certainly before the event in hand, its store buffer included.
  bool visible(const Record& record, const OrderEvent& now) const {
    return is_lock_by_start(*now.event)
               ? !now.late && record.hi < now.lo
               : threads_.visible(record.thread, record.hi, record.store, now);
  }
  bool gone(const Record& record) const {
    return record.generation != graph_.generation(record.unit);
  }
  static bool covered(const Record& record, const Location& location) {
    return record.index < location.cover;
  }
  bool is_visible(const Record& record) const {
    return record.hi < threads_.now() && threads_.has_committed(record.thread, record.store);
  }
  static bool by_locks(const Record& record, const OrderEvent& now) {
    return now.thread->clock.of(record.thread) >= record.clock;
  }
  bool stands_for(const Record& record, const OrderEvent& now) const;
  void link_record(const Record& record, const OrderEvent& now, EdgeKind kind);
  // In place of another record, or of one just added; becomes the last one.
  void remember(const OrderEvent& now, bool writes, bool several, Location& location,
                Record& place);
  static void cover_earlier(const OrderEvent& now, Location& location) {
    location.cover = now.index;
    location.cover_hi = now.hi;
    location.cover_store = now.store;
    location.cover_thread = now.event->thread;
  }

  // Field by field in its place: a copy would have to wait for the stores of the original.
  void fill(Record& record, const Event& event, uint64_t index, int64_t hi, Node unit,
            uint64_t store, uint64_t clock, bool writes, bool several) const {
    record.unit = unit;
    record.thread = event.thread;
    record.index = index;
    record.hi = hi;
    record.store = store;
    record.clock = clock;
    record.location = event.location;
    record.kind = event.kind();
    record.writes = writes;
    record.several = several;
    record.generation = graph_.generation(unit);
  }

  // order_fast_path.cpp
  void access_otherwise(const Event& event, uint64_t index, int64_t hi, bool writes,
                        OrderThread& thread, LocationId id);
  bool is_repeated_load(const Record& latest, const OrderEvent& now) const;
  void drop_visible(OrderThread& thread, Location& location);
  void access_alone(const OrderEvent& now, bool writes, Location& location);
  template <uint8_t kStaticRoles>
  bool access_shortly(const OrderEvent& now, Location& location);
  bool remember_load(const OrderEvent& now, Location& location);

  // order_locations.cpp
  template <uint8_t kStaticRoles>
  void access_fully(const OrderEvent& now, Location& location);
  uint64_t lock_source(const OrderEvent& now, const Location& location);
  void conflict(const Record& record, const OrderEvent& now, bool writes, bool is_source,
                bool* in_order);
  void look_at_own(Record& record, const OrderEvent& now, const Location& location, bool writes,
                   OwnRecords* own);
  template <uint8_t kStaticRoles, bool kHere>
  void conflicts(const OrderEvent& now, Location& location, uint64_t source, bool* in_order,
                 OwnRecords* own);
  void conflicts_of_many(const Record* begin, const Record* end, const OrderEvent& now, bool writes,
                         uint64_t source, bool* in_order);
  template <uint8_t kStaticRoles>
  void record(const OrderEvent& now, Location& location, bool in_order, const OwnRecords& own);
  void remember_release(const OrderEvent& now);

  // order_pruning.cpp
  void prune(Location& location);
  void drop_between(Location& location);
  void evict_pending(Location& location);
  void drop_alike(Location& location);
  void follow_locations();
  void follow_records(Location& location);

  ConflictGraph& graph_;
  OrderThreads& threads_;
  DetectorOptions options_;
  LocationIndex index_;
  std::vector<Location, HugePageAllocator<Location>> locations_;
  std::vector<std::vector<ReleaseClock>> releases_;  // by location; the latest two
  uint64_t oldest_ = 0;                              // units with events before this one are gone
  std::vector<Node> lost_accesses_;
  std::vector<LatestVisible> latest_visible_;  // by thread, of prune()
  std::vector<Chains> chains_;                 // by thread, of conflicts_of_many()
  PruneSchedule pace_;
};

// Two accesses of a unit are distinguished only where one can be visible before the other: a store
// before the release of a lock is, when another thread has taken it.
inline bool OrderLocations::stands_for(const Record& record, const OrderEvent& now) const {
  if (now.store == 0) {
    return record.store == 0 && record.hi < now.lo && now.lo == now.hi;
  }
  return record.store > std::max(now.thread->drained, now.thread->last_release) &&
         options_.relation.store_buffer == 0 && now.others.empty() && record.hi <= now.hi;
}

inline void OrderLocations::remember(const OrderEvent& now, bool writes, bool several,
                                     Location& location, Record& place) {
  std::rotate(&place, &place + 1, location.records.end());
  Record& record = location.records.end()[-1];
  location.after = std::max(location.after, now.index + 1);
  location.last_unit = now.unit;
  const uint64_t clock = (now.roles & kStore) != 0 ? now.store : now.thread->stores + 1;
  fill(record, *now.event, now.index, end_here(now), now.unit, now.store, clock, writes, several);
}

}  // namespace tsomon
