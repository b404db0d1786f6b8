#include "online/order_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

namespace tsomon {
namespace {

// What the events of a kind do.
enum Role : uint8_t {
  kNode = 1,
  kAccess = 2,
  kDrain = 4,   // of the store buffer
  kStore = 8,   // into the store buffer
  kWrite = 16,  // conflicts with loads
  kLock = 32,
  kAcquires = 64,
  kRare = 128,  // thread creation and the like
};

constexpr uint8_t kLoadRoles = kNode | kAccess;
constexpr uint8_t kStoreRoles = kNode | kAccess | kStore | kWrite;
template <uint8_t kKnown>
constexpr bool has(uint8_t roles, Role role) {
  return ((kKnown != 0 ? kKnown : roles) & role) != 0;
}

constexpr uint32_t kRareKinds =
    kind_mask(EventKind::kFork) | kind_mask(EventKind::kJoin) | kind_mask(EventKind::kRelease);

constexpr uint64_t location_bit(LocationId location) { return uint64_t{1} << (location % 64); }

constexpr uint32_t kMaxSweeps = 1U << 15;  // generations wrap around later
constexpr uint64_t kFewLocations = 4096;   // that are not worth looking for unused ones
// Events of the input over which accesses share a node: the stretch of a window has to hold them.
constexpr uint64_t kLongestRun = 256;
constexpr size_t kFewAlone = 6;  // accesses that a location remembers

}  // namespace

OrderPolicy::OrderPolicy(ConflictGraph& graph, const DetectorOptions& options)
    : graph_(graph), options_(options), sc_(options.policy == DetectorPolicy::kSc) {
  if (options.relation.fenced_release) {
    drains_ |= kind_mask(EventKind::kRelease);
  }
  if (sc_) {
    drains_ = ~0U;
  }
  for (uint32_t kind = 0; kind < roles_.size(); ++kind) {
    const auto in = [kind](uint32_t mask) { return ((1U << kind) & mask) != 0; };
    const bool access = in(kinds::kAccesses);
    const bool drains = in(drains_);
    roles_[kind] = static_cast<uint8_t>(
        (in(kinds::kNodes) ? kNode : 0) | (access ? kAccess : 0) | (drains ? kDrain : 0) |
        (in(kinds::kStores) && !drains ? kStore : 0) |
        (access && !in(kinds::kOnlyReads) ? kWrite : 0) | (in(kinds::kLocks) ? kLock : 0) |
        (in(kinds::kAcquisitions) ? kAcquires : 0) | (in(kRareKinds) ? kRare : 0));
  }
}

OrderPolicy::Thread& OrderPolicy::new_thread(ThreadId id) {
  while (id >= threads_.size()) {
    threads_.push_back(std::make_unique<Thread>());
  }
  return *threads_[id];
}

LocationId OrderPolicy::find_location_slowly(const Event& event) {
  const LocationId id = index_.find_or_add(event.address, event.size);
  if (id >= locations_.size()) {
    locations_.resize(id + 1);
    releases_.resize(id + 1);
  }
  return id;
}

void OrderPolicy::lost(ThreadId id) {
  for (ThreadId t = 0; t < threads_.size(); ++t) {
    if (id == Detector::kNoThread || id == t) {
      end_unit(*threads_[t]);
      end_run(*threads_[t]);
      threads_[t]->depth = 0;
    }
  }
}

// ---- Units

void OrderPolicy::end_unit(Thread& thread) {
  if (thread.unit != kNone) {
    graph_.unit(thread.unit).finished = true;
    unit_times_[thread.unit] = thread.time;
    thread.unit = kNone;
  }
}

void OrderPolicy::boundary(const Event& event, uint64_t index) {
  Thread& mine = thread(event.thread);
  if (mine.unit != kNone) {
    graph_.unit(mine.unit).last = index;
  }
  switch (event.kind()) {
    case EventKind::kUnitBegin:
      if (mine.depth++ == 0) {
        mine.label = static_cast<uint32_t>(event.address);
        mine.begin = index;
      }
      break;
    case EventKind::kUnitEnd:
      if (mine.depth > 0 && --mine.depth == 0) {
        end_unit(mine);
      }
      break;
    case EventKind::kWait:
      if (mine.depth > 0) {
        end_unit(mine);
        mine.begin = index + 1;
      }
      break;
    default:
      break;
  }
}

OrderPolicy::Node OrderPolicy::new_unit(Thread& thread, const Event& event, uint64_t index) {
  end_run(thread);
  const bool own = thread.depth == 0;
  const Node unit = graph_.add_unit({event.thread, own ? Interner::kNone : thread.label,
                                     own ? index : thread.begin, index, own, 0});
  if (!own) {
    thread.unit = unit;
  }
  if (unit >= unit_times_.size()) {
    unit_times_.resize(unit + 1);
  }
  thread.time = UnitTime();
  return unit;
}

// ---- Accesses outside units that share a node

void OrderPolicy::end_run(Thread& thread) {
  if (thread.run != kNone) {
    graph_.unit(thread.run).finished = true;
    thread.run = kNone;
  }
}

// No other thread has an access that the event in hand has an edge from.
template <uint8_t kKnown>
inline bool OrderPolicy::is_undisturbed(const Current& now, LocationId where) const {
  const auto& records = locations_[where].records;
  return std::none_of(records.begin(), records.end(), [&](const Record& record) {
    return record.thread != now.event->thread && !gone(record) &&
           (record.writes || has<kKnown>(now.roles, kWrite));
  });
}

// Whether the first of the run comes before the event in hand, and what has an edge to this event
// has one to the first, or is in the run.
template <uint8_t kKnown>
inline bool OrderPolicy::joins_run(const Current& now) const {
  const Thread& mine = *now.thread;
  if (now.late || now.index - graph_.unit(mine.run).first >= kLongestRun) {
    return false;
  }
  if (mine.run_after_all) {
    return is_undisturbed<kKnown>(now, now.location) &&
           std::all_of(now.others.begin(), now.others.end(),
                       [&](LocationId other) { return is_undisturbed<kKnown>(now, other); });
  }
  // What has committed or was released since the first comes before later loads only.
  if (!now.others.empty() || mine.drained != mine.released_up_to || mine.given_up != 0) {
    return false;
  }
  if (has<kKnown>(now.roles, kWrite)) {
    const Node before = mine.last_store.unit;
    if (!mine.forwarded.empty() ||
        (before != kNone && before != mine.run && before != mine.last_drain.unit)) {
      return false;
    }
  } else if (mine.last_load.unit != mine.run || mine.last_store.unit == mine.run ||
             (mine.stores > mine.drained && (mine.stored_to & location_bit(now.location)) != 0)) {
    return false;
  }
  return is_undisturbed<kKnown>(now, now.location);
}

// Of an access outside units, and its order in its thread.
template <uint8_t kKnown>
inline void OrderPolicy::run_or_unit(Current& now) {
  Thread& mine = *now.thread;
  // With no other thread alive nothing that the thread does lies on a cycle.
  const bool joins = mine.run != kNone && joins_run<kKnown>(now);
  if (joins || (mine.run != kNone && live_threads_ == 1 && !now.late &&
                now.index - graph_.unit(mine.run).first < kLongestRun)) {
    now.unit = mine.run;
    now.joins = joins;
    graph_.unit(mine.run).last = now.index;
    ++graph_.statistics().units;
    ++graph_.statistics().sharing;
    order_in_thread<kKnown>(now);
    return;
  }
  now.unit = new_unit(mine, *now.event, now.index);
  order_in_thread<kKnown>(now);
  // A load that may have been forwarded comes before little of what follows.
  const bool load = !has<kKnown>(now.roles, kStore);
  if (options_.share_nodes && !sc_ && !(load && now.store != 0)) {
    mine.run = now.unit;
    mine.run_after_all = load && mine.stores == mine.drained;
    graph_.unit(now.unit).finished = false;
  }
}

// ---- Store buffers

// The first `stores` stores of the thread have committed when the event that ends at `hi` is over.
void OrderPolicy::commit(Thread& thread, uint64_t stores, int64_t hi) {
  if (stores <= thread.drained) {
    return;
  }
  thread.drained = stores;
  settle(thread, stores, hi);
}

// Stores of the thread have committed by `hi`.
void OrderPolicy::settle(Thread& thread, uint64_t stores, int64_t hi) {
  if (stores > settled_stores(thread)) {
    thread.settling.push_back({stores, hi});
  }
}

// The newest own store that overlaps: the load may be forwarded from it, or waits for it.
uint64_t OrderPolicy::find_source(const Current& now) {
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
  commit(*now.thread, newest, now.hi);
  return 0;
}

// ---- Order inside a thread

void OrderPolicy::link_other(const Last& from, const Current& now, EdgeKind kind) {
  graph_.add_directed(from.unit, now.unit, kind,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        source = from.access;
                        target = now.access();
                      });
}

void OrderPolicy::pop_unsettled(Thread& thread) {
  thread.unsettled.pop_front();
  if (thread.unsettled.empty()) {
    thread.storing = nullptr;
  }
}

// Stores that have committed although no fence came, and the loads forwarded from them.
void OrderPolicy::release_committed(Thread& thread) {
  if (thread.unsettled.empty() || thread.unsettled.front().first > thread.drained) {
    if (thread.given_up != 0 && thread.given_up <= thread.drained) {
      thread.given_up = 0;
      ++graph_.statistics().forced;
    }
    return;
  }
  while (!thread.unsettled.empty() && thread.unsettled.front().first <= thread.drained) {
    thread.settled_store = thread.unsettled.front().event;
    if (thread.unsettled.front().last > thread.drained) {
      thread.unsettled.front().first = thread.drained + 1;
      break;
    }
    pop_unsettled(thread);
  }
  auto committed = thread.waiting.begin();
  while (committed != thread.waiting.end() && committed->store <= thread.drained) {
    thread.released.push_back(*committed++);
  }
  thread.waiting.erase(thread.waiting.begin(), committed);
}

template <uint8_t kKnown>
inline void OrderPolicy::order_in_thread(const Current& now) {
  Thread& mine = *now.thread;
  if (kKnown == 0 && sc_) {
    link(mine.last_store, now);
    if (mine.last_store.unit != now.unit) {
      mine.last_store = {now.unit, now.access()};
    }
    return;
  }
  const bool drains = has<kKnown>(now.roles, kDrain);
  if (mine.drained != mine.released_up_to || mine.given_up != 0) {
    mine.released_up_to = mine.drained;
    // A drain makes an end of all that.
    if (!drains || mine.given_up != 0) {
      release_committed(mine);
    }
  }
  // An earlier event of the same unit is as good.
  if (drains || has<kKnown>(now.roles, kStore)) {
    if (!drains && mine.storing != nullptr && mine.storing->event.unit == now.unit) {
      mine.storing->last = mine.stores;
      mine.forwarded.clear();
    } else {
      order_store_in_thread(now, drains);
    }
  } else if (now.store != 0 || mine.last_load.unit != now.unit ||
             mine.settled_store.unit != kNone || !mine.released.empty()) {
    order_load_in_thread(now);
  }
}

void OrderPolicy::order_store_in_thread(const Current& now, bool drains) {
  Thread& mine = *now.thread;
  link(mine.last_store, now);
  link(mine.last_load, now);
  for (const Forwarded& load : mine.forwarded) {
    link(load.load, now);
  }
  mine.forwarded.clear();
  if (mine.last_store.unit != now.unit) {
    mine.last_store = {now.unit, now.access()};
  }
  if (drains) {
    mine.last_load.unit = kNone;
    if (mine.last_drain.unit != now.unit) {
      mine.last_drain = {now.unit, now.access()};
    }
    mine.released.clear();
    mine.waiting.clear();
    mine.unsettled.clear();
    mine.storing = nullptr;
    mine.given_up = 0;
    mine.settled_store.unit = kNone;
    return;
  }
  mine.storing = &mine.unsettled.emplace_back(
      UnsettledStore{mine.stores, mine.stores, {now.unit, now.access()}});
  if (mine.unsettled.size() > options_.max_unsettled_units) {
    mine.given_up = mine.unsettled.front().last;
    pop_unsettled(mine);
  }
}

void OrderPolicy::order_load_in_thread(const Current& now) {
  Thread& mine = *now.thread;
  link(mine.last_load.unit != kNone ? mine.last_load : mine.last_drain, now);
  link(mine.settled_store, now);
  for (const Forwarded& load : mine.released) {
    link(load.load, now);
  }
  if (now.store == 0) {
    mine.released.clear();
    if (mine.last_load.unit != now.unit) {
      mine.last_load = {now.unit, now.access()};
    }
    return;
  }
  const Forwarded load{now.store, now.location, {now.unit, now.access()}};
  for (auto* list : {&mine.forwarded, &mine.waiting}) {
    // Loads of one location are ordered among themselves: the latest stands for the others.
    const auto end = std::upper_bound(
        list->begin(), list->end(), load.store,
        [](uint64_t store, const Forwarded& other) { return store < other.store; });
    auto same = end;
    while (same != list->begin() && std::prev(same)->store == load.store &&
           std::prev(same)->location != load.location) {
      --same;
    }
    if (same != list->begin() && std::prev(same)->store == load.store) {
      *std::prev(same) = load;
      continue;
    }
    list->insert(end, load);
    if (list->size() > options_.max_unsettled_units) {
      list->erase(list->begin());
      ++graph_.statistics().forced;
    }
  }
}

// ---- Conflicts

void OrderPolicy::link_record(const Record& record, const Current& now, EdgeKind kind) {
  graph_.add_directed(record.unit, now.unit, kind,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        target = now.access();
                        source = target;
                        source.index = record.index;
                        source.location = record.location;
                        source.thread = record.thread;
                        source.kind = record.kind;
                      });
}

// The index of the latest release that was certainly over, if it is another thread's.
uint64_t OrderPolicy::lock_source(const Current& now, const Location& location) {
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
      join_clock(&now.thread->clock, release.clock);
    }
  }
  settle(*threads_[source->thread], source->store, now.hi);
  return source->index;
}

inline void OrderPolicy::conflict(const Record& record, const Current& now, bool writes,
                                  bool is_source, bool* in_order) {
  if (!record.writes && !writes) {
    return;
  }
  if (!is_source && by_locks(record, now)) {
    return;  // a chain of releases and acquisitions lies between them
  }
  if (is_source || settled(record.thread, record.hi, record.store, now)) {
    link_record(record, now, EdgeKind::kConflict);
    return;
  }
  *in_order = false;
  graph_.add_undirected(record.unit, now.unit, record.several);
}

// Two accesses of a unit are told apart only where one can be settled before the other.
inline bool OrderPolicy::stands_for(const Record& record, const Current& now) const {
  if (now.store == 0) {
    return record.store == 0 && record.hi < now.lo && now.lo == now.hi;
  }
  return record.store > now.thread->drained && options_.relation.store_buffer == 0 &&
         now.others.empty() && record.hi <= now.hi;
}

// What the record of the event in hand may take the place of.
inline void OrderPolicy::look_at_own(Record& record, const Current& now, const Location& location,
                                     bool writes, OwnRecords* own) {
  if (record.unit == now.unit && record.writes == writes) {
    own->several = true;
    if (!covered(record, location) && stands_for(record, now)) {
      own->same = &record;
    }
  }
  if ((kind_mask(record.kind) & kinds::kLocks) != 0 || !is_settled(record)) {
    return;
  }
  Record*& latest = record.writes ? own->settled_store : own->settled_load;
  if (latest == nullptr) {
    latest = &record;
  } else if (record.index > latest->index) {
    own->superseded = latest;
    latest = &record;
  } else {
    own->superseded = &record;
  }
  if (own->settled_store != nullptr && own->settled_load != nullptr &&
      own->settled_load->index < own->settled_store->index) {
    own->superseded = own->settled_load;
  }
}

// The edges to the event in hand from many accesses, without those that follow from others.
//
// The stores of a thread (and its locked operations) are ordered, and so is every access of the
// thread before a later store. So of the accesses that come before the event those that a later
// store of their thread precedes need no edge: there is a path through the latest such store. Of
// stores whose order is open the first and the last are enough: with s1 -> ... -> sn directed, an
// undirected edge to each of s1 and sn puts them all and the event on one cycle as soon as there
// are two, as would one to every s, and each of them is reached, both ways, from the event and from
// one another; a cycle that uses an edge to some s in between exists with one of these instead.
void OrderPolicy::conflicts_of_many(const Record* begin, const Record* end, const Current& now,
                                    bool writes, uint64_t source, bool* in_order) {
  const ThreadId thread = now.event->thread;
  const auto forwards = [&](const Record& record) {
    return (now.roles & kStore) == 0 && record.store > now.thread->drained;
  };
  stores_.assign(threads_.size(), {});
  for (const Record* at = begin; at != end; ++at) {
    if (!at->writes) {
      continue;
    }
    Stores& stores = stores_[at->thread];
    if (at->thread == thread ? forwards(*at) : settled(at->thread, at->hi, at->store, now)) {
      stores.settled = std::max(stores.settled, at->index + 1);
    } else if (at->thread != thread && at->index != source && !by_locks(*at, now)) {
      const auto earlier = [](const Record* a, const Record* b) { return a->index < b->index; };
      stores.first_open =
          stores.first_open == nullptr || earlier(at, stores.first_open) ? at : stores.first_open;
      stores.last_open =
          stores.last_open == nullptr || earlier(stores.last_open, at) ? at : stores.last_open;
    }
  }
  for (const Record* at = begin; at != end; ++at) {
    const Stores& stores = stores_[at->thread];
    if (at->thread == thread) {
      if (forwards(*at) && at->unit != now.unit && at->index + 1 >= stores.settled) {
        link_record(*at, now, EdgeKind::kProgramOrder);
      }
      continue;
    }
    const bool is_settled = settled(at->thread, at->hi, at->store, now);
    const bool is_between = at->writes && at != stores.first_open && at != stores.last_open;
    if (at->index == source || (is_settled ? at->index + 1 >= stores.settled : !is_between)) {
      conflict(*at, now, writes, at->index == source, in_order);
    }
  }
}

// One pass over the records: those of units that are gone or that a settled store stands for drop
// out, the others make edges.
template <uint8_t kKnown, bool kHere>
inline void OrderPolicy::conflicts(Current& now, Location& location, uint64_t source,
                                   bool* in_order, OwnRecords* own) {
  const bool stores = has<kKnown>(now.roles, kStore);
  const bool writes = has<kKnown>(now.roles, kWrite);
  uint64_t dropped = 0;  // records with smaller indices
  if (location.cover != 0 &&
      settled(location.cover_thread, location.cover_hi, location.cover_store, now)) {
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
  const bool many = kept - begin > static_cast<ptrdiff_t>(options_.few_accesses);
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
      if (!foreign && !has<kKnown>(now.roles, kLock)) {
        look_at_own(*at, now, location, writes, own);
      }
    }
  }
}

// Field by field in its place: a copy would have to wait for the stores of the original.
inline void OrderPolicy::remember(const Current& now, bool writes, bool several, Record& record) {
  record.unit = now.unit;
  record.thread = now.event->thread;
  record.index = now.index;
  record.hi = now.hi;
  record.store = now.store;
  record.clock = (now.roles & kStore) != 0 ? now.store : now.thread->stores + 1;
  record.location = now.event->location;
  record.kind = now.event->kind();
  record.writes = writes;
  record.several = several;
  record.generation = graph_.generation(now.unit);
}

template <uint8_t kKnown>
inline void OrderPolicy::record(const Current& now, Location& location, bool in_order,
                                const OwnRecords& own) {
  const bool writes = has<kKnown>(now.roles, kWrite);
  auto& records = location.records;
  Record* mine = own.same != nullptr ? own.same : own.superseded;
  if (mine == nullptr) {
    mine = &records.add();
  }
  remember(now, writes, own.several, *mine);
  location.mixed = own.others || has<kKnown>(now.roles, kLock);
  if (writes && in_order && records.size() > 1) {
    cover_earlier(now, location);
  }
  if (records.size() > location.prune_at) {
    prune(location);
  }
}

// Drops what a later settled access of the same thread stands for: a store for everything, a load
// for loads.
void OrderPolicy::prune(Location& location) {
  auto& records = location.records;
  latest_settled_.assign(threads_.size(), {});
  for (const Record& record : records) {
    if (is_settled(record)) {
      LatestSettled& latest = latest_settled_[record.thread];
      latest.access = std::max(latest.access, record.index);
      latest.store = record.writes ? std::max(latest.store, record.index) : latest.store;
    }
  }
  records.erase_if([this](const Record& record) {
    const LatestSettled& latest = latest_settled_[record.thread];
    return record.index < (record.writes ? latest.store : latest.access);
  });
  const size_t bound = options_.max_unsettled + threads_.size();
  if (records.size() > bound) {
    give_up_unsettled(location);
  }
  location.prune_at =
      static_cast<uint32_t>(std::min<size_t>(std::max<size_t>(8, 2 * records.size()), bound));
}

// The older half of what is not settled.
void OrderPolicy::give_up_unsettled(Location& location) {
  std::vector<uint64_t> unsettled;
  for (const Record& record : location.records) {
    if (!is_settled(record)) {
      unsettled.push_back(record.index);
    }
  }
  if (unsettled.empty()) {
    return;
  }
  const auto middle = unsettled.begin() + static_cast<ptrdiff_t>(unsettled.size() / 2);
  std::nth_element(unsettled.begin(), middle, unsettled.end());
  const uint64_t last = *middle;
  graph_.statistics().forced += location.records.erase_if(
      [&](const Record& record) { return record.index <= last && !is_settled(record); });
}

// ---- Threads and locks

void OrderPolicy::join_clock(std::vector<uint64_t>* clock, const std::vector<uint64_t>& other) {
  if (clock->size() < other.size()) {
    clock->resize(other.size(), 0);
  }
  for (size_t i = 0; i < other.size(); ++i) {
    (*clock)[i] = std::max((*clock)[i], other[i]);
  }
}

void OrderPolicy::fork(const Current& now) {
  const auto id = static_cast<ThreadId>(now.event->address);
  Thread& child = thread(id);
  if (child.started || id == now.event->thread) {
    ++graph_.statistics().late_events;
    return;
  }
  set_alive(child, true);
  Thread& parent = *threads_[now.event->thread];
  child.last_store = {now.unit, now.access()};
  child.last_drain = child.last_store;
  join_clock(&child.clock, parent.clock);
  child.clock.resize(std::max<size_t>(child.clock.size(), now.event->thread + 1), 0);
  child.clock[now.event->thread] = std::max(child.clock[now.event->thread], parent.stores);
}

void OrderPolicy::join(const Current& now) {
  const auto id = static_cast<ThreadId>(now.event->address);
  if (id >= threads_.size() || id == now.event->thread) {
    return;
  }
  Thread& child = *threads_[id];
  if (child.ended) {
    ++graph_.statistics().late_events;
  }
  for (const Last* last : {&child.last_store, &child.last_load, &child.last_drain}) {
    link(*last, now, EdgeKind::kThread);
  }
  for (const auto* list : {&child.forwarded, &child.released, &child.waiting}) {
    for (const Forwarded& load : *list) {
      link(load.load, now, EdgeKind::kThread);
    }
  }
  Thread& parent = *threads_[now.event->thread];
  join_clock(&parent.clock, child.clock);
  parent.clock.resize(std::max<size_t>(parent.clock.size(), id + 1), 0);
  parent.clock[id] = std::max(parent.clock[id], child.stores + 1);
  // What an ended thread stored has left its buffer.
  commit(child, child.stores, now.hi);
  child.ended = true;
  set_alive(child, false);
}

// ---- Short ways
//
// Most accesses meet nothing of other threads. What follows does for them what conflicts() and
// record() would, for loads and stores of locations that overlap with no other one.
//
// **Alone.** All accesses that the location remembers are of the thread of the event in hand and
// none is of a lock, or they are of units that are all gone (and the location is as good as new).
// No conflict makes an edge; only loads of what other units have in the store buffer do. The event
// is remembered, and what a settled access of the thread stands for goes: a store for everything
// before it, a load for loads. Records of units that are gone may stay, as long as nothing takes
// them for the units that have their places now.
//
// **Among loads.** All accesses that the location remembers are loads, and no store covers any: the
// event, a load from memory, has no edge from any of them. It takes the place of what conflicts()
// and look_at_own() would let it replace: a record of a unit that is gone, the older of two settled
// loads of its thread, or one of its unit that it stands for.
//
// A load need not be remembered at all when the latest record of its thread there is a load of the
// same unit, from memory, with the same `hi` and `clock` (no store was issued in between). Whether
// a later store is directed from a load, open, or ordered by locks depends on thread, `hi`, `store`
// and `clock` alone, and whether a record is covered or pruned on its index in comparison with
// other records: no record of the thread lies between the two, and those of other threads are
// loads, which cover nothing. So both would always meet the same fate, with edges between the same
// units. The one difference between one access and two is `several`, which is set.

inline bool OrderPolicy::is_repeated(const Record& latest, const Current& now) const {
  return latest.unit == now.unit && latest.kind == EventKind::kRead && latest.hi == now.hi &&
         latest.store == 0 && now.store == 0 && latest.clock == now.thread->stores + 1 &&
         !gone(latest);
}

// All that the location remembers is of units that are gone.
inline bool OrderPolicy::is_stale(const Location& location) const {
  const auto& records = location.records;
  return records.size() <= kFewAlone &&
         std::all_of(records.begin(), records.end(),
                     [this](const Record& record) { return record.index < oldest_; });
}

// Where there is no more room in place, or the unit has been here before, or something is still in
// the buffer.
template <uint8_t kKnown>
void OrderPolicy::access_alone(const Current& now, Location& location) {
  constexpr bool kWrites = has<kKnown>(0, kWrite);
  auto& records = location.records;
  const uint64_t committed = settled_stores(*now.thread);
  uint64_t latest = 0;  // settled access, and store
  uint64_t latest_store = 0;
  const Record* last = records.begin();
  Record* place = nullptr;
  bool several = false;
  for (Record& record : records) {
    if (record.hi < now_ && record.store <= committed) {
      latest = std::max(latest, record.index);
      latest_store = std::max(latest_store, record.writes ? record.index : 0);
    }
    last = record.index > last->index ? &record : last;
    if (record.unit == now.unit) {
      if (record.writes == kWrites && !gone(record)) {
        several = true;
        place = !covered(record, location) && stands_for(record, now) ? &record : place;
      }
    } else if (!kWrites && record.store > now.thread->drained && !gone(record)) {
      link_record(record, now, EdgeKind::kProgramOrder);
    }
  }
  if (!kWrites && is_repeated(*last, now)) {
    records[static_cast<size_t>(last - records.begin())].several = true;
    ++graph_.statistics().quiet;
    return;
  }
  if (place != nullptr) {
    remember(now, kWrites, several, *place);
  }
  records.erase_if(
      [&](const Record& record) { return record.index < (record.writes ? latest_store : latest); });
  if (place == nullptr) {
    records.shrink();
    remember(now, kWrites, several, records.add());
  }
  if (kWrites && records.size() > 1) {
    cover_earlier(now, location);
  }
}

// Of a load. False: a record is none of a load, or there are so many that they should be looked
// through.
inline bool OrderPolicy::remember_load(const Current& now, Location& location) {
  auto& records = location.records;
  const ThreadId thread = now.event->thread;
  Record* latest = nullptr;
  Record* settled = nullptr;  // the latest
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
    if (is_settled(record)) {
      if (settled == nullptr) {
        settled = &record;
      } else {
        const bool later = record.index > settled->index;
        place = later ? settled : &record;
        settled = later ? &record : settled;
      }
    }
  }
  ++graph_.statistics().quiet;
  if (latest != nullptr && is_repeated(*latest, now)) {
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
  remember(now, false, several, *place);
  location.mixed = true;
  return true;
}

// Whether that was all that there is to do for the access.
template <uint8_t kKnown>
inline bool OrderPolicy::access_shortly(const Current& now, Location& location) {
  constexpr bool kWrites = has<kKnown>(0, kWrite);
  auto& records = location.records;
  const bool others = records.empty() || location.mixed || records[0].thread != now.event->thread;
  if (others && is_stale(location)) {
    location.cover = 0;
    location.mixed = false;
    remember(now, kWrites, false, records.restart());
    ++graph_.statistics().alone;
    return true;
  }
  if (!others && records.size() <= kFewAlone) {
    ++graph_.statistics().alone;
    bool simple = records.size() < kInPlace && (kWrites || now.store == 0);
    for (size_t i = 0; i < kInPlace; ++i) {  // those that are not there as well, without a branch
      simple &= records.begin()[i].unit != now.unit;
    }
    if (!simple) {
      access_alone<kKnown>(now, location);
      return true;
    }
    remember(now, kWrites, false, records.add());
    if (kWrites) {
      cover_earlier(now, location);
    }
    return true;
  }
  return kKnown == kLoadRoles && now.store == 0 && location.cover == 0 &&
         remember_load(now, location);
}

// ---- One event

// The first event of a thread, or one after its end.
void OrderPolicy::start(Thread& thread) {
  if (thread.ended) {
    thread.ended = false;
    ++graph_.statistics().late_events;
  }
  thread.started = true;
  set_alive(thread, true);
}

template <uint8_t kKnown>
void OrderPolicy::node(const EventBlock& block, const Event& event, uint64_t index,
                       LocationId location) {
  Current now;
  now.roles = kKnown != 0 ? kKnown : roles_[event.kind_bits];
  now.location = location;
  now.event = &event;
  now.index = index;
  now.lo = event.lo;
  now.hi = block.hi(event);
  now.late = event.lo < now_;
  if (now.late) {
    ++graph_.statistics().late_events;
  } else {
    now_ = event.lo;
  }
  Thread& mine = thread(event.thread);
  now.thread = &mine;
  if (!mine.started || !mine.alive || mine.ended) [[unlikely]] {
    start(mine);
  }
  if (event.size != 0) {  // a name overlaps with nothing else
    now.others = index_.others(now.location);
  }
  if (has<kKnown>(now.roles, kDrain)) {
    commit(mine, mine.stores, now.hi);
    mine.stored_to = 0;
  } else if (has<kKnown>(now.roles, kStore)) {
    now.store = ++mine.stores;
    mine.stored_to |= location_bit(location);
    const uint64_t capacity = options_.relation.store_buffer;
    if (capacity != 0 && mine.stores > capacity) {
      commit(mine, mine.stores - capacity, now.hi);
    }
  } else if (has<kKnown>(now.roles, kAccess) && mine.stores > mine.drained &&
             (!now.others.empty() || (mine.stored_to & location_bit(location)) != 0)) {
    now.store = find_source(now);
  }
  if (kKnown != 0 && mine.depth == 0) {
    run_or_unit<kKnown>(now);
  } else {
    now.unit = unit_of(mine, event, index);
    order_in_thread<kKnown>(now);
  }
  if (has<kKnown>(now.roles, kRare)) {
    if (event.kind() == EventKind::kFork) {
      fork(now);
    } else if (event.kind() == EventKind::kJoin) {
      join(now);
    }
  }
  mine.time.store = std::max(mine.time.store, now.store);
  mine.time.hi = std::max(mine.time.hi, now.hi);
  if (mine.unit == kNone) {
    unit_times_[now.unit] = mine.time;
  }
  if (!has<kKnown>(now.roles, kAccess)) {
    return;
  }

  Location& here = locations_[now.location];
  if (kKnown != 0 && options_.short_ways && now.others.empty() && !now.late) {
    if (access_shortly<kKnown>(now, here)) {
      return;
    }
  }
  bool in_order = !now.late;
  OwnRecords own;
  conflicts<kKnown, true>(now, here,
                          has<kKnown>(now.roles, kAcquires) ? lock_source(now, here) : kNoRecord,
                          &in_order, &own);
  for (const LocationId other : now.others) {
    bool in_order_there = true;
    conflicts<kKnown, false>(now, locations_[other], kNoRecord, &in_order_there, nullptr);
  }
  record<kKnown>(now, here, in_order, own);
  if (has<kKnown>(now.roles, kRare)) {
    remember_release(now);
  }
}

// Locations are spread over memory: they are looked up some events ahead, and their cache lines
// asked for. Loads and stores, which are most of the events, have code of their own.
void OrderPolicy::add(const EventBlock& block, uint64_t first_index) {
  constexpr size_t kAhead = 32;
  std::array<LocationId, kAhead> found;
  const size_t size = block.events.size();
  for (size_t begin = 0; begin < size; begin += kAhead) {
    const Event* const events = block.events.data() + begin;
    const size_t count = std::min(kAhead, size - begin);
    for (size_t i = 0; i < count; ++i) {
      // What is no access may find a location as well, which then is not used.
      LocationId id = index_.find_cheaply(events[i]);
      if (id == LocationTable::kNone) [[unlikely]] {
        if (!is(events[i], kinds::kAccesses)) {
          continue;
        }
        id = find_location_slowly(events[i]);
      }
      found[i] = id;
      const auto* location = reinterpret_cast<const char*>(&locations_[id]);
      for (size_t at = 0; at < 2 * kCacheLine; at += kCacheLine) {
        __builtin_prefetch(location + at);
      }
      if (events[i].size != 0) {
        __builtin_prefetch(&index_.others(id));
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Event& event = events[i];
      const uint64_t index = first_index + begin + i;
      const uint8_t roles = roles_[event.kind_bits];
      if (roles == kLoadRoles) {
        node<kLoadRoles>(block, event, index, found[i]);
      } else if (roles == kStoreRoles) {
        node<kStoreRoles>(block, event, index, found[i]);
      } else if ((roles & kNode) != 0) {
        node<0>(block, event, index, found[i]);
      } else {
        boundary(event, index);
      }
    }
  }
  next_ = first_index + size;
}

// So that the next acquisition knows what came before.
void OrderPolicy::remember_release(const Current& now) {
  auto& releases = releases_[now.location];
  if (releases.size() > 1) {
    std::rotate(releases.begin(), releases.begin() + 1, releases.end());
  } else {
    releases.emplace_back();
  }
  const ThreadId thread = now.event->thread;
  ReleaseClock& release = releases.back();
  release.index = now.index;
  release.clock = now.thread->clock;
  release.clock.resize(std::max<size_t>(release.clock.size(), thread + 1), 0);
  release.clock[thread] = now.thread->stores;
}

// ---- Collection

bool OrderPolicy::closed(Node node) {
  const DetectedUnit& unit = graph_.unit(node);
  const UnitTime& time = unit_times_[node];
  return unit.finished &&
         (time.forced || (time.hi < now_ && time.store <= settled_stores(*threads_[unit.thread])));
}

// Units of a thread that never drains its buffer are given up beyond a bound.
void OrderPolicy::before_sweep() {
  for (const auto& each : threads_) {
    end_run(*each);
  }
  const auto undrained = [this](Node node) { return graph_.unit(node).finished && !closed(node); };
  if (graph_.size() <= options_.max_unsettled_units) {
    return;
  }
  undrained_.assign(threads_.size(), 0);
  for (const Node node : graph_.in_use()) {
    if (undrained(node)) {
      ++undrained_[graph_.unit(node).thread];
    }
  }
  for (ThreadId id = 0; id < undrained_.size(); ++id) {
    if (undrained_[id] <= options_.max_unsettled_units) {
      continue;
    }
    std::vector<Node> units;
    for (const Node node : graph_.in_use()) {
      if (undrained(node) && graph_.unit(node).thread == id) {
        units.push_back(node);
      }
    }
    const auto keep = static_cast<ptrdiff_t>(units.size() - options_.max_unsettled_units / 2);
    std::nth_element(units.begin(), units.begin() + keep, units.end(),
                     [&](Node a, Node b) { return graph_.unit(a).first < graph_.unit(b).first; });
    std::for_each(units.begin(), units.begin() + keep,
                  [&](Node node) { unit_times_[node].forced = true; });
    graph_.statistics().forced += static_cast<uint64_t>(keep);
  }
}

void OrderPolicy::after_sweep() {
  const auto move = [&](Last& last) { last.unit = follow(graph_, last.unit); };
  const auto move_all = [&](std::vector<Forwarded>& list) {
    for (Forwarded& load : list) {
      move(load.load);
    }
    std::erase_if(list, [](const Forwarded& load) { return load.load.unit == kNone; });
  };
  for (const auto& each : threads_) {
    Thread& thread = *each;
    thread.unit = follow(graph_, thread.unit);
    for (Last* last :
         {&thread.last_store, &thread.last_drain, &thread.last_load, &thread.settled_store}) {
      move(*last);
    }
    for (UnsettledStore& store : thread.unsettled) {
      move(store.event);
    }
    move_all(thread.forwarded);
    move_all(thread.waiting);
    move_all(thread.released);
  }
  oldest_ = next_;
  for (const Node node : graph_.in_use()) {
    oldest_ = std::min(oldest_, graph_.unit(node).first);
  }
  // Records of units that are gone drop out when their location is used next; the other locations
  // are looked at now and then, and when units have been merged.
  const uint64_t collected = graph_.statistics().collected;
  if (graph_.merged() || ++sweeps_since_ >= kMaxSweeps ||
      collected - collected_then_ >= std::max<uint64_t>(index_.size(), kFewLocations)) {
    collected_then_ = collected;
    sweeps_since_ = 0;
    follow_locations();
  }
}

// Of the settled accesses of a merged unit the latest store stands for all before it: their edges
// would lead from the same node to the same events. For an event of the thread of that store its
// program order does.
void OrderPolicy::drop_alike(Location& location) {
  const auto& records = location.records;
  const auto stands = [this](const Record& record) {
    return (kind_mask(record.kind) & kinds::kLocks) == 0 && graph_.unit(record.unit).merged != 0 &&
           is_settled(record);
  };
  location.records.erase_if([&](const Record& record) {
    return records.size() > 1 && stands(record) &&
           std::any_of(records.begin(), records.end(), [&](const Record& other) {
             return other.unit == record.unit && other.writes && other.index > record.index &&
                    stands(other);
           });
  });
}

void OrderPolicy::follow_locations() {
  for (LocationId id = 0; id < locations_.size(); ++id) {
    if (!index_.contains(id)) {
      continue;
    }
    Location& location = locations_[id];
    location.records.erase_if([&](Record& record) {
      const Node unit = graph_.moved_to(record.unit);
      // Merging gives up the node, and with it the generation, in the same sweep.
      const bool moved = unit != record.unit;
      const auto then = static_cast<uint16_t>(graph_.generation(record.unit) - (moved ? 1 : 0));
      if (unit == kNone || record.generation != then) {
        return true;
      }
      record.unit = unit;
      record.generation = graph_.generation(unit);
      return false;
    });
    drop_alike(location);
    if (graph_.merged()) {
      location.records.shrink();
    }
    const LocationKey& key = index_.key(id);
    const bool named = key.size == 0 && key.address < LocationIndex::kMaxNamed;
    if (location.records.empty() && !named && index_.size() > kFewLocations) {
      location = Location();
      releases_[id].clear();
      index_.erase(id);
    }
  }
}

}  // namespace tsomon
