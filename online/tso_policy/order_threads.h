// The threads of the order policy: what each may have in its store buffer, and the order inside it.
//
// Source      Theory section 2 ("Same thread", "Synchronisation") and section 5.4.
// Purpose     Of every thread the latest store, load and fence, from which a new event of it has
//             directed edges (those that follow from others are left out); how many of its stores
//             have certainly committed, and when; and a vector clock of store numbers, which knows
//             what chains of lock releases and acquisitions order.
//             A clock keeps nothing of threads that had nothing to say since it was last looked
//             at: what came from them is visible by its time.
// Complexity  O(1) for an event, O(active threads) for locks, forks, joins and sweeps. A thread
//             that was joined leaves some hundred bytes.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "online/structures/fifo.h"
#include "online/tso_policy/order_event.h"
#include "online/tso_policy/store_clock.h"

namespace tsomon {

// Units or accesses whose intervals are not over yet, for every one that may wait for a fence: the
// probe has 32,512 accesses between two stamps at most, unless an option says otherwise.
inline constexpr uint64_t kMaxOpen = 8;

// The last event of some kind and its unit.
struct LastEvent {
  Policy::Node unit = ConflictGraph::kNone;
  DetectedAccess access;
};

// When the latest access of a unit is visible.
struct UnitTime {
  uint64_t store = 0;
  int64_t hi = kTimeMin;
  bool evicted = false;
};

struct OrderThread {
  using Node = Policy::Node;
  static constexpr Node kNone = ConflictGraph::kNone;

  // A load that may have been forwarded from the store with this number.
  struct Forwarded {
    uint64_t store = 0;
    LocationId location = 0;
    LastEvent load;
  };
  struct PendingStore {
    uint64_t first = 0;  // numbers of the first and last of a run in one unit
    uint64_t last = 0;
    LastEvent event;
  };
  struct BecomingVisible {
    uint64_t stores = 0;  // that many have committed
    int64_t hi = 0;       // when this event was over
  };

  ThreadId id = 0;
  bool started = false;
  bool ended = false;
  bool alive = false;          // started or to be started, and not joined
  bool present = false;        // OrderThreads::present()
  bool run_in_order = false;   // the first of `run` comes after all before it, and before drains
  bool run_after_all = false;  // ... and before whatever comes next
  uint32_t depth = 0;          // of open units
  uint32_t label = Interner::kNone;
  uint64_t begin = 0;
  Node unit = kNone;  // of the open unit; created with its first event
  Node run = kNone;   // of the latest events outside units, while others may join
  // The unit whose loads (0), and whose stores (1), have no edges from events of the thread that
  // are not there already: order() has nothing to do but to count them.
  std::array<Node, 2> ordered{kNone, kNone};
  UnitTime time;                // of `unit`, or `run`
  int64_t latest = kTimeMin;    // end of the accesses before that
  uint64_t stores = 0;          // issued
  uint64_t stored_to = 0;       // since the last drain: some bit of every location
  uint64_t last_release = 0;    // of these, the latest that gives back a lock
  uint64_t drained = 0;         // of these, that have committed by the latest event of the thread
  uint64_t released_up_to = 0;  // `drained` when `pending` and `waiting` were last looked at
  uint64_t visible = 0;         // that have committed before now()
  Fifo<BecomingVisible> becoming_visible;  // by `hi`
  LastEvent last_store;                    // store or draining event
  LastEvent last_drain;
  LastEvent last_load;      // from memory, since the last drain
  LastEvent visible_store;  // newest store that has committed without a fence
  Fifo<PendingStore> pending;
  PendingStore* storing = nullptr;  // the last of them, and its `last`
  uint64_t storing_last = 0;
  uint64_t evicted = 0;  // stores up to this number are not in `pending`
  // Of loads of one unit one is enough: the edge from their unit is the same. The source of the first commits first.
  Fifo<Forwarded> forwarded;  // loads not yet linked to a later store, by store
  Fifo<Forwarded> waiting;    // loads whose source has not committed, by store
  Fifo<Forwarded> released;   // loads whose source has
  StoreClock clock;           // what comes before what follows here
  size_t trim_at = 2;         // entries of `clock`, until some are looked for to be dropped
};

class OrderThreads {
 public:
  using Node = Policy::Node;

  OrderThreads(ConflictGraph& graph, const DetectorOptions& options)
      : graph_(graph),
        max_pending_(options.tuning.max_pending_units),
        whole_order_(options.policy == DetectorPolicy::kSc ||
                     options.policy == DetectorPolicy::kRobustness) {}

  // nullptr: it is not there, or has nothing left that a later event could refer to.
  OrderThread* find(ThreadId id) {
    return id < threads_.size() ? threads_[id].thread.get() : nullptr;
  }
  OrderThread& find_or_add(ThreadId id) {
    OrderThread* const found = find(id);
    return found != nullptr ? *found : add(id);
  }
  ThreadId size() const { return static_cast<ThreadId>(threads_.size()); }  // all there ever were
  // Those that find() has, but for joined ones of which no unit is there any more.
  const std::vector<OrderThread*>& present() const { return present_; }

  // Where the events have arrived. Late events do not change it.
  int64_t now() const { return now_; }
  void set_now(int64_t now) { now_ = now; }

  // At every event of a thread but a boundary: it is alive.
  void begin_event(OrderThread& thread) {
    if (!thread.started || !thread.alive || thread.ended) [[unlikely]] {
      start(thread);
    }
  }
  bool only_one_alive() const { return alive_ == 1; }

  // The first `stores` stores of the thread have committed when the event that ends at `hi` is
  // over.
  void commit(OrderThread& thread, uint64_t stores, int64_t hi) {
    if (stores <= thread.drained) {
      return;
    }
    thread.drained = stores;
    thread.ordered.fill(OrderThread::kNone);
    mark_visible(thread, stores, hi);
  }
  // All of them have, by a drain. One before it may be over later.
  void drain(OrderThread& thread, int64_t hi) {
    if (thread.stores > thread.drained) {
      commit(thread, thread.stores, hi);
    } else {
      mark_visible(thread, thread.stores, hi);
    }
  }
  // Stores of the thread have committed by `hi`.
  void mark_visible(OrderThread& thread, uint64_t stores, int64_t hi) {
    if (stores > visible_stores(thread) && hi != kTimeMax) {
      queue_visible(thread, stores, hi);
    }
  }
  // Stores of the thread that have committed before now().
  uint64_t visible_stores(OrderThread& thread) const {
    while (!thread.becoming_visible.empty() && thread.becoming_visible.front().hi < now_) {
      thread.visible = std::max(thread.visible, thread.becoming_visible.front().stores);
      thread.becoming_visible.pop_front();
    }
    return thread.visible;
  }
  bool has_committed(ThreadId id, uint64_t store) const {
    OrderThread* const thread = threads_[id].thread.get();
    return thread == nullptr || store <= thread->visible || store <= visible_stores(*thread);
  }
  // Whether an access came certainly before the event in hand, its store buffer included.
  bool visible(ThreadId id, int64_t hi, uint64_t store, const OrderEvent& now) const {
    return !now.late && hi < now.lo && has_committed(id, store);
  }

  // The edges to the event from earlier ones of its thread.
  template <uint8_t kStaticRoles>
  void order(const OrderEvent& now) {
    OrderThread& mine = *now.thread;
    if (whole_order_) {
      link(mine.last_store, now);
      remember(&mine.last_store, now);
      return;
    }
    const bool drains = has<kStaticRoles>(now.roles, kDrain);
    if (mine.drained != mine.released_up_to || mine.evicted != 0) {
      mine.released_up_to = mine.drained;
      // A drain makes an end of all that.
      if (!drains || mine.evicted != 0) {
        release_committed(mine);
      }
    }
    // An earlier event of the same unit is as good.
    if (drains || has<kStaticRoles>(now.roles, kStore)) {
      if (!drains && mine.storing != nullptr && mine.storing->event.unit == now.unit) {
        mine.storing_last = mine.stores;
        mine.forwarded.clear();
        mine.ordered[1] = now.unit;
      } else {
        order_store(now, drains);
      }
    } else if (now.store != 0 || mine.last_load.unit != now.unit ||
               mine.visible_store.unit != OrderThread::kNone || !mine.released.empty()) {
      order_load(now);
    } else {
      mine.ordered[0] = now.unit;
    }
  }
  void fork(const OrderEvent& now);
  void join(const OrderEvent& now);
  // Drops entries of the thread's clock now and then. To be called before the clock is copied.
  void trim_clock(OrderThread& thread);

  // After a sweep of the graph.
  void follow_units();

 private:
  OrderThread& add(ThreadId id);
  void make_present(OrderThread& thread) {
    if (!std::exchange(thread.present, true)) {
      present_.push_back(&thread);
    }
  }
  // False: none of its units is there any more.
  bool follow_units(OrderThread& thread) const;
  // Whatever it does next, it need not be known what it did, but for its number of stores.
  bool forget_if_quiet(OrderThread& thread);
  void start(OrderThread& thread);
  // Whatever it did is visible for all events that are not late.
  bool is_quiet(OrderThread& thread) const {
    return thread.latest < now_ && thread.time.hi < now_ && visible_stores(thread) == thread.stores;
  }
  void forget_quiet(StoreClock& clock) const {
    clock.forget_if([this](ThreadId id) {
      OrderThread* const thread = threads_[id].thread.get();
      return thread == nullptr || is_quiet(*thread);
    });
  }
  void set_alive(OrderThread& thread, bool alive) {
    if (thread.alive != alive) {
      thread.alive = alive;
      alive_ += alive ? 1 : -1;
    }
  }
  static void remember(LastEvent* last, const OrderEvent& now) {
    if (last->unit != now.unit) {
      last->unit = now.unit;
      assign(last->access, *now.event, now.index);
    }
  }
  void link(const LastEvent& from, const OrderEvent& now, EdgeKind kind = EdgeKind::kProgramOrder) {
    if (from.unit != OrderThread::kNone && from.unit != now.unit && !now.joins) {
      link_other(from, now, kind);
    }
  }
  void link_other(const LastEvent& from, const OrderEvent& now, EdgeKind kind);
  static void queue_visible(OrderThread& thread, uint64_t stores, int64_t hi);
  void order_store(const OrderEvent& now, bool drains);
  void order_load(const OrderEvent& now);
  void release_committed(OrderThread& thread);
  static void pop_pending(OrderThread& thread);

  ConflictGraph& graph_;
  uint32_t max_pending_;
  bool whole_order_;  // each event comes before the next one
  int64_t now_ = kTimeMin;
  int alive_ = 0;
  // What is left of a thread while `thread` is nullptr.
  struct Slot {
    std::unique_ptr<OrderThread> thread;
    uint64_t stores = 0;
    bool started = false;
    bool ended = false;
    bool alive = false;
  };
  std::vector<Slot> threads_;
  std::vector<OrderThread*> present_;
};

}  // namespace tsomon
