#include "online/tso_policy/order_threads.h"

#include <algorithm>
#include <iterator>

#include "tso/support/work.h"

namespace tsomon {

OrderThread& OrderThreads::add(ThreadId id) {
  if (id >= threads_.size()) {
    threads_.resize(id + 1);
  }
  Slot& slot = threads_[id];
  slot.thread = std::make_unique<OrderThread>();
  OrderThread& thread = *slot.thread;
  thread.id = id;
  thread.started = slot.started;
  thread.ended = slot.ended;
  thread.alive = slot.alive;
  thread.stores = thread.drained = thread.released_up_to = thread.visible = slot.stores;
  make_present(thread);
  return thread;
}

// The first event of a thread, or one after its end.
void OrderThreads::start(OrderThread& thread) {
  if (thread.ended) {
    thread.ended = false;
    ++graph_.statistics().late_events;
  }
  thread.started = true;
  make_present(thread);
  set_alive(thread, true);
}

// A thread that was interrupted at the end of a drain may have one that is over very late: it must
// not keep later ones from counting.
void OrderThreads::queue_visible(OrderThread& thread, uint64_t stores, int64_t hi) {
  auto& queue = thread.becoming_visible;
  while (!queue.empty() && queue.back().hi >= hi && queue.back().stores <= stores) {
    queue.pop_back();
  }
  if (!queue.empty() && queue.back().hi <= hi && queue.back().stores >= stores) {
    return;
  }
  queue.push_back();
  // What another thread's acquisition tells may be of fewer stores than what is there.
  auto place = std::prev(queue.end());
  for (; place != queue.begin() && std::prev(place)->hi > hi; --place) {
    *place = *std::prev(place);
  }
  place->stores = stores;
  place->hi = hi;
}

// ---- Order inside a thread

void OrderThreads::link_other(const LastEvent& from, const OrderEvent& now, EdgeKind kind) {
  spend(1);
  graph_.add_directed(from.unit, now.unit, kind,
                      [&](DetectedAccess& source, DetectedAccess& target) {
                        source = from.access;
                        assign(target, *now.event, now.index);
                      });
}

void OrderThreads::pop_pending(OrderThread& thread) {
  thread.pending.pop_front();
  if (thread.pending.empty()) {
    thread.storing = nullptr;
  }
}

// Stores that have committed although no fence came, and the loads forwarded from them.
void OrderThreads::release_committed(OrderThread& thread) {
  if (thread.pending.empty() || thread.pending.front().first > thread.drained) {
    if (thread.evicted != 0 && thread.evicted <= thread.drained) {
      thread.evicted = 0;
      ++graph_.statistics().evicted;
    }
    return;
  }
  if (thread.storing != nullptr) {
    thread.storing->last = thread.storing_last;
  }
  while (!thread.pending.empty() && thread.pending.front().first <= thread.drained) {
    thread.visible_store = thread.pending.front().event;
    if (thread.pending.front().last > thread.drained) {
      thread.pending.front().first = thread.drained + 1;
      break;
    }
    pop_pending(thread);
  }
  while (!thread.waiting.empty() && thread.waiting.front().store <= thread.drained) {
    thread.released.push_back() = thread.waiting.front();
    thread.waiting.pop_front();
  }
}

void OrderThreads::order_store(const OrderEvent& now, bool drains) {
  OrderThread& mine = *now.thread;
  link(mine.last_store, now);
  link(mine.last_load, now);
  for (const OrderThread::Forwarded& load : mine.forwarded) {
    link(load.load, now);
  }
  mine.forwarded.clear();
  remember(&mine.last_store, now);
  if (drains) {
    mine.last_load.unit = OrderThread::kNone;
    remember(&mine.last_drain, now);
    mine.released.clear();
    mine.waiting.clear();
    mine.pending.clear();
    mine.storing = nullptr;
    mine.evicted = 0;
    mine.visible_store.unit = OrderThread::kNone;
    // It stands for the loads of its unit: they need not be remembered.
    mine.ordered[0] = now.unit;
    mine.ordered[1] = OrderThread::kNone;
    return;
  }
  mine.ordered[1] = now.unit;
  if (mine.storing != nullptr) {
    mine.storing->last = mine.storing_last;
  }
  mine.storing = &mine.pending.push_back();
  mine.storing->first = mine.stores;
  mine.storing_last = mine.stores;
  remember(&mine.storing->event, now);
  if (mine.pending.size() > max_pending_) {
    mine.evicted = mine.pending.front().last;
    mine.ordered.fill(OrderThread::kNone);
    pop_pending(mine);
  }
}

void OrderThreads::order_load(const OrderEvent& now) {
  OrderThread& mine = *now.thread;
  link(mine.last_load.unit != OrderThread::kNone ? mine.last_load : mine.last_drain, now);
  link(mine.visible_store, now);
  for (const OrderThread::Forwarded& load : mine.released) {
    link(load.load, now);
  }
  if (now.store == 0) {
    mine.released.clear();
    remember(&mine.last_load, now);
    mine.ordered[0] = now.unit;
    return;
  }
  mine.ordered[1] = OrderThread::kNone;  // the next one comes after this load
  const OrderThread::Forwarded load{now.store, now.location, {now.unit, now.access()}};
  for (auto* list : {&mine.forwarded, &mine.waiting}) {
    if (!list->empty() && list->back().load.unit == now.unit && list->back().store <= load.store) {
      continue;
    }
    // Loads of one location are ordered among themselves: the latest stands for the others.
    const auto end = std::upper_bound(
        list->begin(), list->end(), load.store,
        [](uint64_t store, const OrderThread::Forwarded& other) { return store < other.store; });
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
    if (list->size() > max_pending_) {
      list->pop_front();
      ++graph_.statistics().evicted;
    }
  }
}

// ---- Thread creation, and what locks pass on

void OrderThreads::trim_clock(OrderThread& thread) {
  if (thread.clock.size() >= thread.trim_at) {
    forget_quiet(thread.clock);
    thread.trim_at = 2 + 2 * thread.clock.size();
  }
}

void OrderThreads::fork(const OrderEvent& now) {
  const auto id = static_cast<ThreadId>(now.event->address);
  OrderThread& child = find_or_add(id);
  if (child.started || id == now.event->thread) {
    ++graph_.statistics().late_events;
    return;
  }
  make_present(child);
  set_alive(child, true);
  OrderThread& parent = *now.thread;
  child.last_store = {now.unit, now.access()};
  child.last_drain = child.last_store;
  trim_clock(parent);
  child.clock.join(parent.clock);
  child.clock.raise(now.event->thread, parent.stores);
}

void OrderThreads::join(const OrderEvent& now) {
  const auto id = static_cast<ThreadId>(now.event->address);
  if (id >= threads_.size() || id == now.event->thread) {
    return;
  }
  OrderThread& child = find_or_add(id);
  if (child.ended) {
    ++graph_.statistics().late_events;
  }
  for (const LastEvent* last : {&child.last_store, &child.last_load, &child.last_drain}) {
    link(*last, now, EdgeKind::kThread);
  }
  for (auto* list : {&child.forwarded, &child.released, &child.waiting}) {
    for (const OrderThread::Forwarded& load : *list) {
      link(load.load, now, EdgeKind::kThread);
    }
  }
  OrderThread& parent = *now.thread;
  parent.clock.join(child.clock);
  parent.clock.raise(id, child.stores + 1);
  trim_clock(parent);
  child.clock = StoreClock();
  // What an ended thread stored has left its buffer.
  drain(child, now.hi);
  child.ended = true;
  child.ordered.fill(OrderThread::kNone);
  set_alive(child, false);
}

bool OrderThreads::follow_units(OrderThread& thread) const {
  bool any = false;
  const auto move = [&](Node* node) {
    *node = *node == OrderThread::kNone ? *node : graph_.moved_to(*node);
    any |= *node != OrderThread::kNone;
  };
  const auto move_all = [&](Fifo<OrderThread::Forwarded>& list) {
    for (OrderThread::Forwarded& load : list) {
      move(&load.load.unit);
    }
    list.erase_if(
        [](const OrderThread::Forwarded& load) { return load.load.unit == OrderThread::kNone; });
  };
  move(&thread.unit);
  any |= thread.run != OrderThread::kNone;
  thread.ordered.fill(OrderThread::kNone);
  for (LastEvent* last :
       {&thread.last_store, &thread.last_drain, &thread.last_load, &thread.visible_store}) {
    move(&last->unit);
  }
  for (OrderThread::PendingStore& store : thread.pending) {
    move(&store.event.unit);
  }
  move_all(thread.forwarded);
  move_all(thread.waiting);
  move_all(thread.released);
  return any;
}

bool OrderThreads::forget_if_quiet(OrderThread& thread) {
  // A thread that goes on counts those of its stores that its own events have drained.
  if (thread.depth != 0 || thread.drained != thread.stores || !is_quiet(thread)) {
    return false;
  }
  forget_quiet(thread.clock);
  if (thread.clock.size() != 0) {
    return false;
  }
  Slot& slot = threads_[thread.id];
  slot.stores = thread.stores;
  slot.started = thread.started;
  slot.ended = thread.ended;
  slot.alive = thread.alive;
  slot.thread.reset();
  return true;
}

void OrderThreads::follow_units() {
  std::erase_if(present_, [this](OrderThread* thread) {
    if (follow_units(*thread)) {
      return false;
    }
    if (forget_if_quiet(*thread)) {
      return true;
    }
    if (thread->ended) {
      thread->pending = {};
      thread->storing = nullptr;
      thread->present = false;
    }
    return thread->ended;
  });
}

}  // namespace tsomon
