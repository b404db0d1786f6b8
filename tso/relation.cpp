#include "tso/relation.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace tsomon {
namespace {

// What a thread's store buffer may hold, and who was forwarded from it.
struct Buffer {
  std::deque<uint32_t> stores;                                    // oldest first
  std::unordered_map<LocationId, uint32_t> newest;                // store; stale once it has left
  std::unordered_map<uint32_t, std::vector<uint32_t>> forwarded;  // store -> loads
};

}  // namespace

Relation::Relation(const Trace& trace, const LocationTable& locations,
                   const RelationOptions& options)
    : trace_(&trace), locations_(&locations), options_(options) {
  const size_t n = trace.events.size();
  hi_.resize(n);
  settled_by_.assign(n, kNever);
  source_.assign(n, kNever);
  lock_source_.assign(n, kNever);
  position_.resize(n);
  std::vector<uint32_t> positions;
  for (uint32_t e = 0; e < n; ++e) {
    hi_[e] = trace.hi(trace.events[e]);
    const ThreadId thread = trace.events[e].thread;
    if (thread >= positions.size()) {
      positions.resize(thread + 1);
    }
    position_[e] = positions[thread]++;
  }
  settle_stores();
  if (options_.order == TraceOrder::kIssue && options_.lock_order) {
    find_lock_sources();
  }
  settle_times();
}

void Relation::settle_stores() {
  std::vector<Buffer> buffers;
  for (uint32_t e = 0; e < trace_->events.size(); ++e) {
    const Event& event = trace_->events[e];
    if (!is(event, kinds::kNodes)) {
      continue;
    }
    if (event.thread >= buffers.size()) {
      buffers.resize(event.thread + 1);
    }
    Buffer& buffer = buffers[event.thread];
    // Everything up to and including the first `count` stores has committed when e completes.
    const auto leave = [&](size_t count) {
      for (; count > 0; --count) {
        const uint32_t store = buffer.stores.front();
        buffer.stores.pop_front();
        settled_by_[store] = e;
        if (const auto loads = buffer.forwarded.find(store); loads != buffer.forwarded.end()) {
          for (const uint32_t load : loads->second) {
            settled_by_[load] = e;
          }
          buffer.forwarded.erase(loads);
        }
      }
    };
    if (options_.model == MemoryModel::kSc || drains(e)) {
      leave(buffer.stores.size());
      settled_by_[e] = e;
    } else if (is_store(e)) {
      buffer.stores.push_back(e);
      buffer.newest[locations_->of_event(e)] = e;
      if (options_.store_buffer != 0 && buffer.stores.size() > options_.store_buffer) {
        leave(1);
      }
    } else {
      settled_by_[e] = e;
      const LocationId here = locations_->of_event(e);
      if (here == LocationTable::kNone) {
        continue;  // a join
      }
      uint32_t newest = kNever;
      for (const LocationId other : locations_->overlapping(here)) {
        const auto store = buffer.newest.find(other);
        if (store != buffer.newest.end() && settled_by_[store->second] == kNever &&
            (newest == kNever || store->second > newest)) {
          newest = store->second;
        }
      }
      if (newest == kNever) {
        continue;
      }
      if (contains(locations_->key(locations_->of_event(newest)), locations_->key(here))) {
        source_[e] = newest;
        settled_by_[e] = kNever;  // until the source leaves the buffer
        buffer.forwarded[newest].push_back(e);
      } else {
        const auto at = std::find(buffer.stores.begin(), buffer.stores.end(), newest);
        leave(static_cast<size_t>(at - buffer.stores.begin()) + 1);
      }
    }
  }
}

void Relation::find_lock_sources() {
  // "Each acq(l) reads the latest earlier rel(l)": per lock, releases by the end of their interval.
  std::unordered_map<LocationId, std::vector<uint32_t>> releases;
  for (uint32_t e = 0; e < trace_->events.size(); ++e) {
    if (trace_->events[e].kind() == EventKind::kRelease) {
      releases[locations_->of_event(e)].push_back(e);
    }
  }
  for (auto& [lock, list] : releases) {
    std::stable_sort(list.begin(), list.end(),
                     [&](uint32_t a, uint32_t b) { return hi_[a] < hi_[b]; });
  }
  for (uint32_t e = 0; e < trace_->events.size(); ++e) {
    const Event& event = trace_->events[e];
    if (!is(event, kinds::kAcquisitions)) {
      continue;
    }
    const auto list = releases.find(locations_->of_event(e));
    if (list == releases.end()) {
      continue;
    }
    const auto after =
        std::lower_bound(list->second.begin(), list->second.end(), event.lo,
                         [&](uint32_t release, int64_t time) { return hi_[release] < time; });
    if (after != list->second.begin()) {
      const uint32_t release = *(after - 1);
      if (trace_->events[release].thread != event.thread) {
        lock_source_[e] = release;
      }
    }
  }
}

// Its own thread, a join of it, or the acquisition of a lock that it released later tell.
void Relation::settle_times() {
  const auto& events = trace_->events;
  settled_at_.assign(events.size(), kTimeMax);
  if (options_.order == TraceOrder::kThread) {
    return;
  }
  ThreadId threads = 0;
  for (const Event& event : events) {
    threads = std::max<ThreadId>(threads, event.thread + 1);
  }
  // Of each thread, for all that comes before in program order.
  std::vector<int64_t> by_thread(threads, kTimeMax);
  std::vector<int64_t> acquired(events.size(), kTimeMax);
  for (uint32_t e = 0; e < events.size(); ++e) {
    if (options_.thread_order && events[e].kind() == EventKind::kJoin &&
        events[e].address < threads) {
      int64_t& time = by_thread[events[e].address];
      time = std::min(time, hi_[e]);
    }
    if (lock_source_[e] != kNever) {
      int64_t& time = acquired[lock_source_[e]];
      time = std::min(time, hi_[e]);
    }
  }
  for (uint32_t e = static_cast<uint32_t>(events.size()); e-- > 0;) {
    int64_t& time = by_thread[events[e].thread];
    time = std::min(time, acquired[e]);
    settled_at_[e] = time;
    if (settled_by_[e] != kNever) {
      settled_at_[e] = std::min(time, hi_[settled_by_[e]]);
    }
  }
}

bool Relation::ordered_in_thread(uint32_t e, uint32_t f) const {
  const bool like_a_load = is_read(f) || trace_->events[f].kind() == EventKind::kJoin;
  if (options_.model == MemoryModel::kSc || !like_a_load) {
    return true;
  }
  const bool relaxed = is_store(e) || source_[e] != kNever;
  if (!relaxed) {
    return true;
  }
  // Settled in between (or by f itself, which then had to wait for the commit).
  if (settled_by_[e] != kNever && position_[settled_by_[e]] <= position_[f]) {
    return true;
  }
  return is_read(f) && overlap(locations_->key(locations_->of_event(e)),
                               locations_->key(locations_->of_event(f)));
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
  return certainly_before(e, f) && (settled_at(e) < lo(f) || lock_source_[f] == e);
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
    return Order::kNone;
  }
  if (directed(e, f)) {
    return Order::kBefore;
  }
  return directed(f, e) ? Order::kAfter : Order::kUndirected;
}

}  // namespace tsomon
