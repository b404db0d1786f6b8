#include "online/tso_policy/order_policy.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace tsomon {
namespace {

constexpr uint32_t kThreadKinds = kind_mask(EventKind::kFork) | kind_mask(EventKind::kJoin);
// Have edges from, or to, other threads beside those of their location.
constexpr uint32_t kPassing = kThreadKinds | kinds::kHandOvers;
constexpr uint32_t kRareKinds = kPassing | kind_mask(EventKind::kRelease);
constexpr uint32_t kGiving = kind_mask(EventKind::kPost) | kind_mask(EventKind::kSend);
constexpr uint32_t kSemaphores = kind_mask(EventKind::kCount) | kind_mask(EventKind::kDestroy);

// Events of the input over which accesses share a node: the slice of a candidate has to hold them.
constexpr uint64_t kLongestRun = 256;

}  // namespace

std::array<uint8_t, 32> order_roles(uint32_t drains) {
  std::array<uint8_t, 32> roles{};
  for (uint32_t kind = 0; kind < roles.size(); ++kind) {
    const auto in = [kind](uint32_t mask) { return ((1U << kind) & mask) != 0; };
    const bool access = in(kinds::kAccesses);
    roles[kind] = static_cast<uint8_t>(
        (in(kinds::kNodes) ? kNode : 0) | (access ? kAccess : 0) | (in(drains) ? kDrain : 0) |
        (in(kinds::kBuffered) && !in(drains) ? kStore : 0) |
        (access && !in(kinds::kOnlyReads) ? kWrite : 0) | (in(kinds::kLocks) ? kLock : 0) |
        (in(kinds::kAcquisitions) ? kAcquires : 0) | (in(kRareKinds) ? kRare : 0));
  }
  return roles;
}

OrderPolicy::OrderPolicy(ConflictGraph& graph, const DetectorOptions& options)
    : graph_(graph),
      options_(options),
      sc_(options.policy == DetectorPolicy::kSc),
      by_event_(options.policy == DetectorPolicy::kRobustness),
      capacity_(options.relation.store_buffer != 0 ? options.relation.store_buffer : UINT64_MAX),
      threads_(graph, options),
      locations_(graph, threads_, options),
      hand_overs_(graph, threads_, options.relation.lock_order) {
  const uint32_t releases = options.relation.fenced_release ? kind_mask(EventKind::kRelease) : 0;
  roles_ = order_roles(sc_ ? ~0U : kinds::kDrains | releases);
}

void OrderPolicy::lost(ThreadId id) {
  hand_overs_.lost();
  for (OrderThread* thread : threads_.present()) {
    if (id == kNoThread || id == thread->id) {
      end_unit(*thread);
      end_run(*thread);
      thread->depth = 0;
    }
  }
}

// ---- Units

void OrderPolicy::end_unit(OrderThread& thread) {
  if (thread.unit != kNone) {
    graph_.unit(thread.unit).finished = true;
    unit_times_[thread.unit] = thread.time;
    thread.unit = kNone;
  }
}

void OrderPolicy::boundary(const EventBlock& block, const Event& event, uint64_t index) {
  if (is(event, kSemaphores)) {
    hand_overs_.begin(block, event);
  }
  if (by_event_) {
    return;
  }
  OrderThread& mine = threads_.find_or_add(event.thread);
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
        mine.begin = index;
      }
      break;
    default:
      break;
  }
}

OrderPolicy::Node OrderPolicy::new_unit(OrderThread& thread, const Event& event, uint64_t index) {
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
  thread.latest = std::max(thread.latest, thread.time.hi);
  thread.time = UnitTime();
  return unit;
}

// ---- Accesses outside units that share a node

void OrderPolicy::end_run(OrderThread& thread) {
  if (thread.run != kNone) {
    graph_.unit(thread.run).finished = true;
    thread.run = kNone;
  }
}

// Whether the first of the run comes before the event in hand, and what has an edge to this event
// has one to the first, or is in the run.
template <uint8_t kStaticRoles>
inline bool OrderPolicy::joins_coalesced(const OrderEvent& now) const {
  const OrderThread& mine = *now.thread;
  if (now.late || now.index - graph_.unit(mine.run).first >= kLongestRun) {
    return false;
  }
  if (kStaticRoles == 0) {
    // Not a release: the thread may sleep before it is known that this store has committed, and
    // what is reached from its node stays until then.
    return has<kStaticRoles>(now.roles, kDrain) && mine.run_in_order &&
           (!has<kStaticRoles>(now.roles, kAccess) || locations_.is_undisturbed<kStaticRoles>(now));
  }
  if (mine.run_after_all) {
    return locations_.is_undisturbed<kStaticRoles>(now);
  }
  // What has committed or was released since the first comes before later loads only.
  if (!now.others.empty() || mine.drained != mine.released_up_to || mine.evicted != 0) {
    return false;
  }
  if (has<kStaticRoles>(now.roles, kWrite)) {
    const Node before = mine.last_store.unit;
    if (!mine.forwarded.empty() ||
        (before != kNone && before != mine.run && before != mine.last_drain.unit)) {
      return false;
    }
  } else if (mine.last_load.unit != mine.run || mine.last_store.unit == mine.run ||
             (mine.stores > mine.drained && (mine.stored_to & location_bit(now.location)) != 0)) {
    return false;
  }
  return locations_.is_undisturbed<kStaticRoles>(now);
}

// Of an event outside units, and its order in its thread.
template <uint8_t kStaticRoles>
inline void OrderPolicy::run_or_unit(OrderEvent& now) {
  OrderThread& mine = *now.thread;
  const bool drains = has<kStaticRoles>(now.roles, kDrain);
  // With no other thread alive nothing that the thread does lies on a cycle.
  const bool joins = mine.run != kNone && joins_coalesced<kStaticRoles>(now);
  if (joins || (mine.run != kNone && threads_.only_one_alive() && !now.late &&
                now.index - graph_.unit(mine.run).first < kLongestRun)) {
    now.unit = mine.run;
    now.joins = joins;
    mine.run_after_all = mine.run_after_all || (joins && drains);
    graph_.unit(mine.run).last = now.index;
    ++graph_.statistics().units;
    ++graph_.statistics().sharing;
    threads_.order<kStaticRoles>(now);
    return;
  }
  now.unit = new_unit(mine, *now.event, now.index);
  threads_.order<kStaticRoles>(now);
  // A load that may have been forwarded comes before little of what follows.
  const bool load = !drains && !has<kStaticRoles>(now.roles, kStore);
  if (options_.tuning.coalesce_singletons && !sc_ && (by_event_ || !(load && now.store != 0))) {
    mine.run = now.unit;
    mine.run_in_order = by_event_ || !load || mine.stores == mine.drained;
    mine.run_after_all = by_event_ || (mine.run_in_order && (load || drains));
    graph_.unit(now.unit).finished = false;
  }
}

// ---- One event

template <uint8_t kStaticRoles>
void OrderPolicy::node(const EventBlock& block, const Event& event, uint64_t index,
                       LocationId location) {
  OrderEvent now;
  now.roles = kStaticRoles != 0 ? kStaticRoles : roles_[event.kind_bits];
  now.location = location;
  now.event = &event;
  now.index = index;
  now.lo = event.lo;
  now.hi = block.hi(event);
  now.late = event.lo < threads_.now();
  if (now.late) {
    ++graph_.statistics().late_events;
  } else {
    threads_.set_now(event.lo);
  }
  OrderThread& mine = threads_.find_or_add(event.thread);
  now.thread = &mine;
  threads_.begin_event(mine);
  if (event.size != 0) {  // a name overlaps with nothing else
    now.others = locations_.others(now.location);
  }
  if (has<kStaticRoles>(now.roles, kDrain)) {
    // What is handed over has a number, so that it is known what came before it.
    mine.stores += kStaticRoles == 0 && is(event, kGiving) ? 1 : 0;
    threads_.drain(mine, now.hi);
    mine.stored_to = 0;
  } else if (has<kStaticRoles>(now.roles, kStore)) {
    now.store = ++mine.stores;
    mine.stored_to |= location_bit(location);
    if (kStaticRoles == 0) {
      mine.last_release = now.store;
    }
    if (mine.stores > capacity_) {
      threads_.commit(mine, mine.stores - capacity_, now.hi);
    }
  } else if (has<kStaticRoles>(now.roles, kAccess) && mine.stores > mine.drained &&
             (!now.others.empty() || (mine.stored_to & location_bit(location)) != 0)) {
    now.store = locations_.find_source(now);
  }
  if (mine.depth == 0 && (kStaticRoles != 0 || !is(event, kPassing))) {
    run_or_unit<kStaticRoles>(now);
  } else {
    now.unit = unit_of(mine, event, index);
    threads_.order<kStaticRoles>(now);
  }
  if (has<kStaticRoles>(now.roles, kRare)) {
    if (event.kind() == EventKind::kFork) {
      threads_.fork(now);
    } else if (event.kind() == EventKind::kJoin) {
      threads_.join(now);
    } else if (is(event, kinds::kHandOvers)) {
      hand_overs_.add(block, now);
    }
  }
  mine.time.store = std::max(mine.time.store, now.store);
  if (!is(event, kind_mask(EventKind::kFence))) {
    mine.time.hi = std::max(mine.time.hi, now.hi);
  }
  if (mine.unit == kNone) {
    unit_times_[now.unit] = mine.time;
  }
  if (has<kStaticRoles>(now.roles, kAccess)) {
    locations_.access<kStaticRoles>(now);
  }
}

// What node() does, for the load or store of an open unit that makes no edge in its thread. False:
// it is none of these, and nothing was done. Whether it is a load or a store nobody can foresee, so
// no branch depends on it.
inline bool OrderPolicy::access_plainly(const EventBlock& block, const Event& event, uint64_t index,
                                        bool writes, LocationId location) {
  OrderThread* const known = threads_.find(event.thread);
  if (!options_.tuning.fast_path || known == nullptr) {
    return false;
  }
  OrderThread& mine = *known;
  const uint64_t bit = location_bit(location);
  const uint64_t waiting = mine.stores - mine.drained;
  const bool full = writes & (waiting >= capacity_);
  const bool forwards = !writes & (waiting != 0) & ((mine.stored_to & bit) != 0);
  if (mine.unit == kNone || mine.ordered[writes ? 1 : 0] != mine.unit ||
      event.lo < threads_.now() || (full | forwards) ||
      (event.size != 0 && !locations_.others(location).empty())) {
    return false;
  }
  const int64_t hi = block.hi(event);
  threads_.set_now(event.lo);
  mine.stores += writes ? 1 : 0;
  mine.stored_to |= writes ? bit : 0;
  mine.storing_last = writes ? mine.stores : mine.storing_last;
  mine.time.store = writes ? mine.stores : mine.time.store;
  mine.time.hi = std::max(mine.time.hi, hi);
  graph_.unit(mine.unit).last = index;
  locations_.access_plainly(event, index, hi, writes, mine, location);
  return true;
}

// Locations are looked up some events ahead, and what is known of them asked for.
void OrderPolicy::add(const EventBlock& block, uint64_t first_index) {
  constexpr size_t kAhead = 32;
  constexpr size_t kRecordsAhead = 12;
  std::array<LocationId, kAhead> found;
  found.fill(LocationTable::kNone);
  const Event* const events = block.events.data();
  const size_t size = block.events.size();
  const auto look_up = [&](size_t i) {
    const LocationId id = locations_.find(events[i]);
    found[i % kAhead] = id;
    if (id != LocationTable::kNone) {
      locations_.prefetch(id, events[i]);
    }
  };
  for (size_t i = 0; i < std::min(kAhead, size); ++i) {
    look_up(i);
  }
  for (size_t i = 0; i < size; ++i) {
    const Event& event = events[i];
    const LocationId location = found[i % kAhead];
    if (i + kAhead < size) {
      look_up(i + kAhead);
    }
    if (const LocationId next = found[(i + kRecordsAhead) % kAhead]; next != LocationTable::kNone) {
      locations_.prefetch_records(next);
    }
    const uint64_t index = first_index + i;
    const uint8_t roles = roles_[event.kind_bits];
    if (roles == kLoadRoles || roles == kStoreRoles) {
      const bool writes = roles == kStoreRoles;
      if (access_plainly(block, event, index, writes, location)) {
        continue;
      }
      if (writes) {
        node<kStoreRoles>(block, event, index, location);
      } else {
        node<kLoadRoles>(block, event, index, location);
      }
    } else if ((roles & kNode) != 0) {
      node<0>(block, event, index, location);
    } else {
      boundary(block, event, index);
    }
  }
  next_ = first_index + size;
}

// ---- Collection

bool OrderPolicy::closed(Node node) {
  const DetectedUnit& unit = graph_.unit(node);
  const UnitTime& time = unit_times_[node];
  return unit.finished && (time.evicted || (time.hi < threads_.now() &&
                                            threads_.has_committed(unit.thread, time.store)));
}

// Units of a thread that never drains its buffer are evicted beyond a bound.
void OrderPolicy::before_sweep() {
  for (OrderThread* thread : threads_.present()) {
    end_run(*thread);
  }
  // Without its access a unit gains no edge any more, whatever it waits for.
  for (const Node node : locations_.take_lost_accesses()) {
    const DetectedUnit& unit = graph_.unit(node);
    if (unit.label == Interner::kNone && unit.first == unit.last) {
      unit_times_[node].store = 0;
    }
  }
  const auto undrained = [this](Node node) { return graph_.unit(node).finished && !closed(node); };
  if (graph_.size() <= options_.tuning.max_pending_units) {
    return;
  }
  undrained_.clear();
  std::copy_if(graph_.in_use().begin(), graph_.in_use().end(), std::back_inserter(undrained_),
               undrained);
  const auto thread_of = [&](Node node) { return graph_.unit(node).thread; };
  std::sort(undrained_.begin(), undrained_.end(),
            [&](Node a, Node b) { return thread_of(a) < thread_of(b); });
  for (auto begin = undrained_.begin(); begin != undrained_.end();) {
    const auto end = std::find_if(begin, undrained_.end(),
                                  [&](Node node) { return thread_of(node) != thread_of(*begin); });
    // Those whose intervals end some time need no fence.
    const auto open = static_cast<uint64_t>(std::count_if(begin, end, [&](Node node) {
      return unit_times_[node].hi >= threads_.now() && unit_times_[node].hi != kTimeMax;
    }));
    const uint64_t bound = options_.tuning.max_pending_units;
    const uint64_t most = bound + std::min(open, kMaxOpen * bound);
    if (const auto size = static_cast<uint64_t>(end - begin); size > most) {
      const auto keep = begin + static_cast<ptrdiff_t>(size - most / 2);
      std::nth_element(begin, keep, end,
                       [&](Node a, Node b) { return graph_.unit(a).first < graph_.unit(b).first; });
      std::for_each(begin, keep, [&](Node node) { unit_times_[node].evicted = true; });
      graph_.statistics().evicted += static_cast<uint64_t>(keep - begin);
    }
    begin = end;
  }
}

void OrderPolicy::after_sweep() {
  threads_.follow_units();
  hand_overs_.follow_units();
  locations_.follow_units(next_);
}

}  // namespace tsomon
