#include "tso/model/relation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tso/model/lock_order.h"
#include "tso/support/flat_map.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// What a thread's store buffer may hold, and who was forwarded from it.
class Buffer {
 public:
  bool empty() const { return oldest_ == stores_.size(); }
  size_t size() const { return stores_.size() - oldest_; }

  void push(uint32_t store, LocationId location) {
    stores_.push_back({store, kNone});
    newest_[location] = store;
  }

  // The newest store to the location, which may have left; kNever: none.
  uint32_t newest(LocationId location) const {
    const uint32_t* const store = newest_.find(location);
    return store == nullptr ? Relation::kNever : *store;
  }

  void forward(uint32_t store, uint32_t load) {
    InBuffer& from = stores_[place(store)];
    loads_.push_back({load, from.last_load});
    from.last_load = static_cast<uint32_t>(loads_.size() - 1);
  }

  // How many stores there are up to this one.
  size_t up_to(uint32_t store) const { return place(store) - oldest_ + 1; }

  // The oldest `count` leave: mark_visible(e) for each of them and for each load forwarded from it.
  template <typename MakeVisible>
  void leave(size_t count, const MakeVisible& mark_visible) {
    for (; count > 0; --count, ++oldest_) {
      mark_visible(stores_[oldest_].store);
      for (uint32_t at = stores_[oldest_].last_load; at != kNone; at = loads_[at].next) {
        mark_visible(loads_[at].load);
      }
    }
    if (empty()) {
      stores_.clear();
      loads_.clear();
      oldest_ = 0;
    }
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;
  struct InBuffer {
    uint32_t store;
    uint32_t last_load;  // in loads_
  };
  struct Load {
    uint32_t load;
    uint32_t next;  // in loads_, from the same store
  };

  size_t place(uint32_t store) const {
    const auto at =
        std::lower_bound(stores_.begin() + static_cast<ptrdiff_t>(oldest_), stores_.end(), store,
                         [](const InBuffer& one, uint32_t event) { return one.store < event; });
    return static_cast<size_t>(at - stores_.begin());
  }

  std::vector<InBuffer> stores_;  // oldest first, those before oldest_ have left
  size_t oldest_ = 0;
  std::vector<Load> loads_;
  FlatMap<LocationId, uint32_t> newest_;  // also of stores that have left
};

}  // namespace

Relation::Relation(const Trace& trace, const LocationTable& locations,
                   const RelationOptions& options)
    : trace_(&trace), locations_(&locations), options_(options) {
  number_events();
  find_visible_stores();
  if (options_.order == TraceOrder::kIssue && options_.lock_order) {
    find_lock_sources();
    hand_overs_ = tsomon::hand_overs(trace);
  }
  find_visible_times();
  // Events of a lock that are ordered by their beginnings: whoever holds it next finds all that was
  // done under it before.
  if (options_.order == TraceOrder::kIssue) {
    for (uint32_t e = 0; e < trace.events.size(); ++e) {
      if (is_lock_by_start(trace.events[e])) {
        hi_[e] = visible_at_[e] = trace.events[e].lo;
      }
    }
  }
}

void Relation::number_events() {
  const size_t n = trace_->events.size();
  spend(4 * n);  // this and what follows, but for loops inside of loops
  hi_.resize(n);
  position_.resize(n);
  thread_begin_.assign(1, 0);
  for (uint32_t e = 0; e < n; ++e) {
    const Event& event = trace_->events[e];
    hi_[e] = trace_->hi(event);
    if (event.thread + 1 >= thread_begin_.size()) {
      thread_begin_.resize(event.thread + 2, 0);
    }
    position_[e] = thread_begin_[event.thread + 1]++;
    if (event.kind() == EventKind::kRelease) {
      releases_.push_back(e);
    } else if (is(event, kinds::kAcquisitions)) {
      acquisitions_.push_back(e);
    } else if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
      thread_events_.push_back(e);
    }
  }
  std::partial_sum(thread_begin_.begin(), thread_begin_.end(), thread_begin_.begin());
  in_threads_.resize(n);
  for (uint32_t e = 0; e < n; ++e) {
    in_threads_[thread_begin_[trace_->events[e].thread] + position_[e]] = e;
  }
}

void Relation::find_visible_stores() {
  visible_by_.assign(trace_->events.size(), kNever);
  source_.assign(trace_->events.size(), kNever);
  std::vector<Buffer> buffers(threads());
  for (uint32_t e = 0; e < trace_->events.size(); ++e) {
    const Event& event = trace_->events[e];
    if (!is(event, kinds::kNodes)) {
      continue;
    }
    Buffer& buffer = buffers[event.thread];
    // The oldest `count` stores have committed when e completes.
    const auto leave = [&](size_t count) {
      buffer.leave(count, [&](uint32_t visible) { visible_by_[visible] = e; });
    };
    if (options_.model == MemoryModel::kSc || drains(e)) {
      leave(buffer.size());
      visible_by_[e] = e;
    } else if (is_store(e)) {
      buffer.push(e, locations_->of_event(e));
      if (options_.store_buffer != 0 && buffer.size() > options_.store_buffer) {
        leave(1);
      }
    } else {
      visible_by_[e] = e;
      const LocationId here = locations_->of_event(e);
      if (here == LocationTable::kNone || buffer.empty()) {
        continue;  // a join or receive, or nothing to be forwarded from
      }
      uint32_t newest = kNever;
      spend(locations_->overlapping(here).size());
      for (const LocationId other : locations_->overlapping(here)) {
        const uint32_t store = buffer.newest(other);
        if (store != kNever && visible_by_[store] == kNever &&
            (newest == kNever || store > newest)) {
          newest = store;
        }
      }
      if (newest == kNever) {
        continue;
      }
      if (contains(locations_->key(locations_->of_event(newest)), locations_->key(here))) {
        source_[e] = newest;
        visible_by_[e] = kNever;  // until the source leaves the buffer
        buffer.forward(newest, e);
      } else {
        leave(buffer.up_to(newest));
      }
    }
  }
}

// "Each acq(l) reads the latest earlier rel(l)": per lock, releases by the end of their interval.
void Relation::find_lock_sources() {
  FlatMap<LocationId, uint32_t> locks;
  std::vector<std::vector<uint32_t>> of_lock;
  for (const uint32_t e : releases_) {
    const auto [lock, is_new] =
        locks.try_emplace(locations_->of_event(e), static_cast<uint32_t>(of_lock.size()));
    if (is_new) {
      of_lock.emplace_back();
    }
    of_lock[*lock].push_back(e);
  }
  const auto over = [&](uint32_t release) {
    return is_lock_by_start(trace_->events[release]) ? trace_->events[release].lo : hi_[release];
  };
  for (std::vector<uint32_t>& list : of_lock) {
    std::stable_sort(list.begin(), list.end(),
                     [&](uint32_t a, uint32_t b) { return over(a) < over(b); });
  }
  for (const uint32_t e : acquisitions_) {
    const Event& event = trace_->events[e];
    const uint32_t* const lock = locks.find(locations_->of_event(e));
    if (lock == nullptr) {
      continue;
    }
    const std::vector<uint32_t>& list = of_lock[*lock];
    const auto after =
        std::lower_bound(list.begin(), list.end(), event.lo,
                         [&](uint32_t release, int64_t time) { return over(release) < time; });
    if (after != list.begin()) {
      const uint32_t release = *(after - 1);
      if (trace_->events[release].thread != event.thread) {
        lock_source_.resize(trace_->events.size(), kNever);
        lock_source_[e] = release;
      }
    }
  }
}

// Its own thread, a join of it, or the acquisition of a lock that it released later tell, or a take
// or receive of what it posted or sent later.
void Relation::find_visible_times() {
  const auto& events = trace_->events;
  visible_at_.assign(events.size(), kTimeMax);
  if (options_.order == TraceOrder::kThread) {
    return;
  }
  // Of each thread, for all that comes before in program order.
  std::vector<int64_t> by_thread(threads(), kTimeMax);
  if (options_.thread_order) {
    for (const uint32_t e : thread_events_) {
      if (events[e].kind() == EventKind::kJoin && events[e].address < threads()) {
        int64_t& time = by_thread[events[e].address];
        time = std::min(time, hi_[e]);
      }
    }
  }
  // Of the releases, when an acquisition that reads them was over.
  for (const uint32_t e : acquisitions_) {
    if (const uint32_t release = lock_source(e); release != kNever) {
      visible_at_[release] = std::min(visible_at_[release], hi_[e]);
    }
  }
  // Likewise what was handed over.
  for (const HandOver& one : hand_overs_) {
    visible_at_[one.from] = std::min(visible_at_[one.from], hi_[one.to]);
  }
  // An event by which stores have committed may be over later than the next one of that kind. Of
  // such events: when the first of them and those after it was over.
  std::vector<int64_t> over(events.size(), kTimeMax);
  for (uint32_t e = 0; e < events.size(); ++e) {
    if (visible_by_[e] != kNever && (visible_by_[e] != e || drains(e))) {
      over[visible_by_[e]] = hi_[visible_by_[e]];
    }
  }
  std::vector<int64_t> latest(threads(), kTimeMax);
  for (auto e = static_cast<uint32_t>(events.size()); e-- > 0;) {
    if (over[e] != kTimeMax) {
      int64_t& first_over = latest[events[e].thread];
      over[e] = first_over = std::min(first_over, over[e]);
    }
    int64_t& time = by_thread[events[e].thread];
    time = std::min(time, visible_at_[e]);
    visible_at_[e] = time;
    if (const uint32_t by = visible_by_[e]; by != kNever) {
      visible_at_[e] = std::min(time, by == e ? hi_[e] : over[by]);
    }
  }
}

bool Relation::ordered_in_thread(uint32_t e, uint32_t f) const {
  const bool like_a_load = is(trace_->events[f], kinds::kLoadLike);
  if (options_.model == MemoryModel::kSc || !like_a_load) {
    return true;
  }
  const bool relaxed = is_store(e) || source_[e] != kNever;
  if (!relaxed) {
    return true;
  }
  // Visible in between (or by f itself, which then had to wait for the commit).
  if (visible_by_[e] != kNever && position_[visible_by_[e]] <= position_[f]) {
    return true;
  }
  const LocationId here = locations_->of_event(e);
  return is_read(f) && here != LocationTable::kNone &&
         overlap(locations_->key(here), locations_->key(locations_->of_event(f)));
}

bool Relation::conflict(uint32_t e, uint32_t f) const {
  const Event& a = trace_->events[e];
  const Event& b = trace_->events[f];
  return a.thread != b.thread && is(a, kinds::kAccesses) && is(b, kinds::kAccesses) &&
         !(only_reads(e) && only_reads(f)) && overlap({a.address, a.size}, {b.address, b.size});
}

bool Relation::directed(uint32_t e, uint32_t f) const {
  if (options_.order == TraceOrder::kThread) {
    return false;
  }
  return certainly_before(e, f) && (visible_at(e) < lo(f) || lock_source(f) == e);
}

bool Relation::found_hand_over(uint32_t e, uint32_t f) const {
  return std::binary_search(hand_overs_.begin(), hand_overs_.end(), HandOver{e, f},
                            [](const HandOver& a, const HandOver& b) {
                              return std::pair(a.to, a.from) < std::pair(b.to, b.from);
                            });
}

Order Relation::between(uint32_t e, uint32_t f) const {
  const Event& a = trace_->events[e];
  const Event& b = trace_->events[f];
  if (a.thread == b.thread) {
    if (position_[e] < position_[f]) {
      return ordered_in_thread(e, f) ? Order::kBefore : Order::kNone;
    }
    return ordered_in_thread(f, e) ? Order::kAfter : Order::kNone;
  }
  // A fork drains the parent and precedes all of the child; all of the child, drained, precedes the
  // join.
  const auto starts = [](const Event& parent, const Event& child) {
    return parent.kind() == EventKind::kFork && parent.address == child.thread;
  };
  const auto ends = [](const Event& child, const Event& parent) {
    return parent.kind() == EventKind::kJoin && parent.address == child.thread;
  };
  if (starts(a, b) || ends(a, b)) {
    return options_.thread_order ? Order::kBefore : Order::kUndirected;
  }
  if (starts(b, a) || ends(b, a)) {
    return options_.thread_order ? Order::kAfter : Order::kUndirected;
  }
  if (!conflict(e, f)) {
    return hands_over(e, f) ? Order::kBefore : hands_over(f, e) ? Order::kAfter : Order::kNone;
  }
  if (directed(e, f)) {
    return Order::kBefore;
  }
  return directed(f, e) ? Order::kAfter : Order::kUndirected;
}

}  // namespace tsomon
