// Conflicts under SC or TSO: all directed and undirected edges between units, as events arrive.
//
// Source      Theory sections 2 and 5; the same relation as tso/relation.h, one event at a time.
// Purpose     For every event the edges from the units before it that matter: in its thread the
//             latest store, load and fence (directed edges that follow from others are left out),
//             on its location what other threads did. An access is *settled* when its thread has
//             drained its store buffer since, in time that lies before the new event; settled
//             accesses are directed to it, others undirected, unless a chain of lock releases and
//             acquisitions orders them (a vector clock of store numbers for each thread).
// Events      outside every unit are units of their own, and most programs have more of them than
//             anything else. Such loads and stores, one after the other in a thread, share a node
//             as long as nothing but the first has an edge that leads to it, and the first comes
//             before all others: every path then enters by the first and may leave by any, so no
//             cycle of directed edges appears or is lost. Of undirected edges there may be more
//             windows, never less.
// Locks       Under Semantics::kPaper, too, a load that may have been forwarded is settled with its
//             store when another thread takes a lock that was released after the store; the paper's
//             relation leaves that order open.
// State       Per location and unit one record for its loads and one for its stores. Records that a
//             later settled access stands for are dropped, so their number is bounded by the
//             threads and by the stores that are not settled.
// Complexity  O(records of the location), and O(threads) for locks.
// Bounds      Stores that no fence ever settles would be kept for ever: past
//             DetectorOptions::max_unsettled and max_unsettled_units the oldest are given up, which
//             the statistics count in `forced` and which makes the result incomplete. With a store
//             buffer of known capacity this does not happen.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "online/inline_list.h"
#include "online/location_index.h"
#include "online/policy.h"

namespace tsomon {

class OrderPolicy : public Policy {
 public:
  OrderPolicy(ConflictGraph& graph, const DetectorOptions& options);

  void add(const EventBlock& block, uint64_t first_index) override;
  void lost(ThreadId thread) override;
  bool closed(Node node) override;
  void before_sweep() override;
  void after_sweep() override;
  size_t locations() const override { return index_.size(); }
  size_t worth_a_sweep() const override { return 0; }

 private:
  static constexpr Node kNone = ConflictGraph::kNone;
  static constexpr size_t kCacheLine = 64;
  static constexpr uint64_t kNoRecord = UINT64_MAX;
  static constexpr uint32_t kInPlace = 4;  // accesses that a location remembers

  // The last event of some kind and its unit.
  struct Last {
    Node unit = kNone;
    DetectedAccess access;
  };
  // A load that may have been forwarded from the store with this number.
  struct Forwarded {
    uint64_t store = 0;
    LocationId location = 0;
    Last load;
  };
  struct UnsettledStore {
    uint64_t first = 0;  // numbers of the first and last of a run in one unit
    uint64_t last = 0;
    Last event;
  };
  struct UnitTime {
    uint64_t store = 0;
    int64_t hi = kTimeMin;
    bool forced = false;
  };
  struct Settling {
    uint64_t stores = 0;  // that many have committed
    int64_t hi = 0;       // when this event was over
  };
  struct Thread {
    bool started = false;
    bool ended = false;
    bool alive = false;          // started or to be started, and not joined
    bool run_after_all = false;  // `run` begins with a load, and with an empty store buffer
    uint32_t depth = 0;          // of open units
    uint32_t label = Interner::kNone;
    uint64_t begin = 0;
    Node unit = kNone;            // of the open unit; created with its first event
    Node run = kNone;             // of the latest accesses outside units, while others may join
    UnitTime time;                // of `unit`, or `run`
    uint64_t stores = 0;          // issued
    uint64_t stored_to = 0;       // since the last drain: some bit of every location
    uint64_t drained = 0;         // of these, that have committed by the latest event of the thread
    uint64_t released_up_to = 0;  // `drained` when `unsettled` and `waiting` were last looked at
    uint64_t settled = 0;         // that have committed before now_
    std::deque<Settling> settling;
    Last last_store;  // store or draining event
    Last last_drain;
    Last last_load;      // from memory, since the last drain
    Last settled_store;  // newest store that has committed without a fence
    std::deque<UnsettledStore> unsettled;
    UnsettledStore* storing = nullptr;  // the last of them
    uint64_t given_up = 0;              // stores up to this number are not in `unsettled`
    std::vector<Forwarded> forwarded;   // loads not yet linked to a later store, by store
    std::vector<Forwarded> waiting;     // loads whose source has not committed, by store
    std::vector<Forwarded> released;    // loads whose source has
    std::vector<uint64_t> clock;        // per thread: stores that come before what follows here
  };
  // An access to a location: the only one of its kind by its unit, or the latest of those that
  // become settled together with it.
  struct Record {
    Node unit = kNone;
    ThreadId thread = 0;
    uint64_t index = 0;
    int64_t hi = 0;
    uint64_t store = 0;  // that must have committed for the access to be settled; 0: none
    uint64_t clock = 0;  // the store of its thread by which everything up to it is passed on
    uint32_t location = Event::kNoLocation;
    EventKind kind = EventKind::kRead;
    bool writes : 1 = false;
    bool several : 1 = false;  // stands for earlier accesses, too
    uint16_t generation = 0;   // of `unit`
  };
  struct alignas(kCacheLine) Location {
    // A store that came after all records with a smaller index: once it is settled, it stands for
    // them. 0: there is none.
    uint64_t cover = 0;
    uint64_t cover_store = 0;
    int64_t cover_hi = 0;
    ThreadId cover_thread = 0;
    uint32_t prune_at = 8;
    InlineList<Record, kInPlace> records;
    bool mixed = false;  // the records may be of several threads, or of locks
  };
  static_assert(sizeof(Location) == 4 * kCacheLine);
  // Of one thread at one location; 0 is none, as is the first event of all.
  struct LatestSettled {
    uint64_t access = 0;
    uint64_t store = 0;
  };
  // Of one thread at one location, where there are many records.
  struct Stores {
    uint64_t settled = 0;  // 1 + index of the latest that comes before the event in hand, or may be
                           // forwarded to it
    const Record* first_open = nullptr;
    const Record* last_open = nullptr;
  };
  struct ReleaseClock {
    uint64_t index = 0;
    std::vector<uint64_t> clock;
  };
  // The event in hand.
  struct Current {
    const Event* event = nullptr;
    uint64_t index = 0;
    int64_t lo = 0;
    int64_t hi = 0;
    Thread* thread = nullptr;
    Node unit = kNone;
    LocationId location = LocationTable::kNone;
    std::span<const LocationId> others;  // that overlap with it
    uint8_t roles = 0;
    bool late = false;
    bool joins = false;  // a run, and has no edge of its own from what came before
    uint64_t store = 0;  // its own number; of a load, that of the store it may be forwarded from
    DetectedAccess access() const { return access_of(*event, index); }
  };

  // Records of the thread of the event in hand at its location.
  struct OwnRecords {
    bool others = false;              // there are those of other threads, too, or of locks
    bool several = false;             // the unit has one of the same kind (load or store) already
    Record* same = nullptr;           // ... that the event may take the place of
    Record* settled_load = nullptr;   // the latest
    Record* settled_store = nullptr;  // the latest
    Record* superseded = nullptr;     // one that one of these two stands for
  };

  LocationId find_location_slowly(const Event& event);
  Thread& thread(ThreadId id) { return id < threads_.size() ? *threads_[id] : new_thread(id); }
  Thread& new_thread(ThreadId id);
  void boundary(const Event& event, uint64_t index);
  void end_unit(Thread& thread);
  // kKnown: the roles of the event where they are known when this is compiled, or 0.
  template <uint8_t kKnown>
  void node(const EventBlock& block, const Event& event, uint64_t index, LocationId location);
  void start(Thread& thread);
  bool is_repeated(const Record& latest, const Current& now) const;
  bool is_stale(const Location& location) const;
  template <uint8_t kKnown>
  void access_alone(const Current& now, Location& location);
  template <uint8_t kKnown>
  bool access_shortly(const Current& now, Location& location);
  bool remember_load(const Current& now, Location& location);
  Node unit_of(Thread& thread, const Event& event, uint64_t index) {
    if (thread.unit == kNone) {
      return new_unit(thread, event, index);
    }
    graph_.unit(thread.unit).last = index;
    return thread.unit;
  }
  Node new_unit(Thread& thread, const Event& event, uint64_t index);
  void end_run(Thread& thread);
  template <uint8_t kKnown>
  bool is_undisturbed(const Current& now, LocationId where) const;
  template <uint8_t kKnown>
  bool joins_run(const Current& now) const;
  template <uint8_t kKnown>
  void run_or_unit(Current& now);
  void set_alive(Thread& thread, bool alive) {
    if (thread.alive != alive) {
      thread.alive = alive;
      live_threads_ += alive ? 1 : -1;
    }
  }
  uint64_t find_source(const Current& now);
  template <uint8_t kKnown>
  void order_in_thread(const Current& now);
  void order_store_in_thread(const Current& now, bool drains);
  void order_load_in_thread(const Current& now);
  void release_committed(Thread& thread);
  static void pop_unsettled(Thread& thread);
  void link(const Last& from, const Current& now, EdgeKind kind = EdgeKind::kProgramOrder) {
    if (from.unit != kNone && from.unit != now.unit && !now.joins) {
      link_other(from, now, kind);
    }
  }
  void link_other(const Last& from, const Current& now, EdgeKind kind);
  void conflict(const Record& record, const Current& now, bool writes, bool is_source,
                bool* in_order);
  static bool covered(const Record& record, const Location& location) {
    return record.index < location.cover;
  }
  bool stands_for(const Record& record, const Current& now) const;
  void look_at_own(Record& record, const Current& now, const Location& location, bool writes,
                   OwnRecords* own);
  template <uint8_t kKnown, bool kHere>
  void conflicts(Current& now, Location& location, uint64_t source, bool* in_order,
                 OwnRecords* own);
  void conflicts_of_many(const Record* begin, const Record* end, const Current& now, bool writes,
                         uint64_t source, bool* in_order);
  bool by_locks(const Record& record, const Current& now) const {
    const auto& clock = now.thread->clock;
    return record.thread < clock.size() && clock[record.thread] >= record.clock;
  }
  void link_record(const Record& record, const Current& now, EdgeKind kind);
  uint64_t lock_source(const Current& now, const Location& location);
  template <uint8_t kKnown>
  void record(const Current& now, Location& location, bool in_order, const OwnRecords& own);
  void remember(const Current& now, bool writes, bool several, Record& record);
  static void cover_earlier(const Current& now, Location& location) {
    location.cover = now.index;
    location.cover_hi = now.hi;
    location.cover_store = now.store;
    location.cover_thread = now.event->thread;
  }
  void remember_release(const Current& now);
  bool gone(const Record& record) const {
    return record.generation != graph_.generation(record.unit);
  }
  void follow_locations();
  void drop_alike(Location& location);
  bool is_settled(const Record& record) {
    return record.hi < now_ && has_settled(record.thread, record.store);
  }
  void prune(Location& location);
  void give_up_unsettled(Location& location);
  void fork(const Current& now);
  void join(const Current& now);
  void join_clock(std::vector<uint64_t>* clock, const std::vector<uint64_t>& other);
  bool settled(ThreadId thread, int64_t hi, uint64_t store, const Current& now) {
    return !now.late && hi < now.lo && has_settled(thread, store);
  }
  bool has_settled(ThreadId thread, uint64_t store) {
    return store <= threads_[thread]->settled || store <= settled_stores(*threads_[thread]);
  }
  // Stores of the thread that have committed before now_.
  uint64_t settled_stores(Thread& thread) {
    while (!thread.settling.empty() && thread.settling.front().hi < now_) {
      thread.settled = std::max(thread.settled, thread.settling.front().stores);
      thread.settling.pop_front();
    }
    return thread.settled;
  }
  void commit(Thread& thread, uint64_t stores, int64_t hi);
  void settle(Thread& thread, uint64_t stores, int64_t hi);
  static Node follow(const ConflictGraph& graph, Node node) {
    return node == kNone ? kNone : graph.moved_to(node);
  }

  ConflictGraph& graph_;
  DetectorOptions options_;
  bool sc_ = false;
  uint32_t drains_ = kinds::kDrains;  // kinds that drain the store buffer
  std::array<uint8_t, 32> roles_{};   // by kind
  int64_t now_ = kTimeMin;
  uint64_t next_ = 0;    // index of the next event
  uint64_t oldest_ = 0;  // units with events before this one are gone
  int live_threads_ = 0;
  std::vector<LatestSettled> latest_settled_;  // by thread, of prune()
  std::vector<Stores> stores_;                 // by thread, of conflicts_of_many()
  std::vector<std::unique_ptr<Thread>> threads_;
  LocationIndex index_;
  std::vector<Location> locations_;
  std::vector<std::vector<ReleaseClock>> releases_;  // by location; the latest two
  std::vector<UnitTime> unit_times_;                 // by node
  std::vector<uint32_t> undrained_;                  // by thread, of before_sweep()
  // When all locations were last looked at for units that are gone.
  uint64_t collected_then_ = 0;
  uint32_t sweeps_since_ = 0;
};

}  // namespace tsomon
