#include "tso/event_graph.h"

#include <algorithm>
#include <unordered_map>

namespace tsomon {
namespace {

constexpr uint32_t kNone = Relation::kNever;

// The directed edges among the events of one thread, one event at a time in program order.
class ThreadOrder {
 public:
  ThreadOrder(const Relation& relation, std::vector<Edge>* edges)
      : relation_(relation), edges_(edges) {}

  void add(uint32_t e) {
    release_settled(e);
    if (relation_.options().model == MemoryModel::kSc) {
      link(last_store_, e);
      last_store_ = e;
    } else if (relation_.drains(e) || relation_.is_store(e)) {
      link(last_store_, e);
      link(last_load_, e);
      link_all(&forwarded_, e);
      last_store_ = e;
      if (relation_.drains(e)) {
        last_load_ = kNone;
        last_drain_ = e;
        released_.clear();
        newest_store_.clear();
        newest_forwarded_.clear();
        unsettled_.clear();
        settled_store_ = kNone;
      } else {
        newest_store_[relation_.locations().of_event(e)] = e;
        unsettled_.push_back(e);
      }
    } else {
      add_load(e);
    }
  }

 private:
  void link(uint32_t from, uint32_t to) {
    if (from != kNone) {
      edges_->push_back({from, to});
    }
  }

  void link_all(std::vector<uint32_t>* from, uint32_t to) {
    for (const uint32_t e : *from) {
      link(e, to);
    }
    from->clear();
  }

  // Stores that have certainly committed when e completes, although no fence came: they and the
  // loads forwarded from them come before every later load.
  void release_settled(uint32_t e) {
    size_t count = 0;
    while (count < unsettled_.size()) {
      const uint32_t by = relation_.settled_by(unsettled_[count]);
      if (by == kNone || relation_.position(by) > relation_.position(e)) {
        break;
      }
      settled_store_ = unsettled_[count++];
    }
    if (count == 0) {
      return;
    }
    unsettled_.erase(unsettled_.begin(), unsettled_.begin() + static_cast<ptrdiff_t>(count));
    for (const uint32_t load : recent_forwarded_) {
      const uint32_t by = relation_.settled_by(load);
      if (by != kNone && relation_.position(by) <= relation_.position(e)) {
        released_.push_back(load);
      }
    }
    std::erase_if(recent_forwarded_, [&](uint32_t load) {
      const uint32_t by = relation_.settled_by(load);
      return by != kNone && relation_.position(by) <= relation_.position(e);
    });
  }

  void add_load(uint32_t e) {
    link(last_load_ != kNone ? last_load_ : last_drain_, e);
    link(settled_store_, e);
    const LocationId here = relation_.locations().of_event(e);
    if (here != LocationTable::kNone) {
      for (const LocationId other : relation_.locations().overlapping(here)) {
        for (const auto* newest : {&newest_store_, &newest_forwarded_}) {
          if (const auto at = newest->find(other); at != newest->end()) {
            link(at->second, e);
          }
        }
      }
    }
    if (relation_.source(e) == kNone) {
      link_all(&released_, e);
      last_load_ = e;
    } else {
      for (const uint32_t load : released_) {
        link(load, e);
      }
      forwarded_.push_back(e);
      recent_forwarded_.push_back(e);
      newest_forwarded_[here] = e;
    }
  }

  const Relation& relation_;
  std::vector<Edge>* edges_;
  uint32_t last_store_ = kNone;  // store or draining event
  uint32_t last_drain_ = kNone;
  uint32_t last_load_ = kNone;      // from memory, since the last drain
  uint32_t settled_store_ = kNone;  // newest store that has committed without a fence
  std::vector<uint32_t> unsettled_;
  std::vector<uint32_t> forwarded_;         // buffered loads not yet linked to a later store
  std::vector<uint32_t> recent_forwarded_;  // buffered loads whose source has not settled
  std::vector<uint32_t> released_;          // buffered loads whose source has
  std::unordered_map<LocationId, uint32_t> newest_store_;
  std::unordered_map<LocationId, uint32_t> newest_forwarded_;
};

// One list of ThreadAccesses with what is needed to find the relevant stretch of it.
struct TimedList {
  const std::vector<uint32_t>* events = nullptr;
  std::vector<int64_t> settled;   // running maximum of when each is directed to later events
  std::vector<int64_t> earliest;  // minimum of lo from here on
  size_t begin = 0;               // of the stretch that was looked for last
  size_t end = 0;
};

struct TimedAccesses {
  ThreadId thread = 0;
  TimedList writes;
  TimedList reads;
};

int64_t directed_from(const Relation& relation, uint32_t e) {
  return std::max(relation.hi(e), relation.settled_at(e));
}

// The accesses of all locations. Everything here goes through the trace from one end to the other,
// not through one location after the other: what is used together lies together.
class TimedIndex {
 public:
  TimedIndex(const Relation& relation, const AccessIndex& accesses)
      : relation_(relation), lists_(relation.locations().size()) {
    for (LocationId location = 0; location < lists_.size(); ++location) {
      for (const ThreadAccesses& list : accesses.at(location)) {
        TimedAccesses& timed = lists_[location].emplace_back();
        timed.thread = list.thread;
        make_room(list.writes, &timed.writes);
        make_room(list.reads, &timed.reads);
      }
    }
    const bool ordered = relation.options().order == TraceOrder::kIssue;
    const auto n = static_cast<uint32_t>(relation.trace().events.size());
    for (uint32_t e = 0; e < n; ++e) {
      if (TimedList* list = list_of(e)) {
        const int64_t before = list->settled.empty() ? kTimeMin : list->settled.back();
        list->settled.push_back(ordered ? std::max(before, directed_from(relation, e)) : kTimeMax);
      }
    }
    for (uint32_t e = n; e-- > 0;) {
      if (TimedList* list = list_of(e)) {
        const int64_t after = list->earliest.empty() ? kTimeMax : list->earliest.back();
        list->earliest.push_back(ordered ? std::min(after, relation.lo(e)) : kTimeMin);
      }
    }
    for (auto& of_location : lists_) {
      for (TimedAccesses& timed : of_location) {
        for (TimedList* list : {&timed.writes, &timed.reads}) {
          std::reverse(list->earliest.begin(), list->earliest.end());
        }
      }
    }
  }

  std::vector<TimedAccesses>& at(LocationId location) { return lists_[location]; }

 private:
  static void make_room(const std::vector<uint32_t>& events, TimedList* list) {
    list->events = &events;
    list->settled.reserve(events.size());
    list->earliest.reserve(events.size());
  }

  TimedList* list_of(uint32_t e) {
    const LocationId location = relation_.locations().of_event(e);
    if (location == LocationTable::kNone) {
      return nullptr;
    }
    const ThreadId thread = relation_.trace().events[e].thread;
    const auto list = std::find_if(lists_[location].begin(), lists_[location].end(),
                                   [&](const TimedAccesses& one) { return one.thread == thread; });
    return relation_.only_reads(e) ? &list->reads : &list->writes;
  }

  const Relation& relation_;
  std::vector<std::vector<TimedAccesses>> lists_;
};

// As std::partition_point() over a sorted list, found in steps that double from where the last
// answer was: events that come one after the other have answers that do.
template <typename Below>
size_t partition_near(const std::vector<int64_t>& sorted, size_t start, const Below& below) {
  size_t low = 0;
  size_t high = sorted.size();
  size_t step = 1;
  if (start < sorted.size() && below(sorted[start])) {
    low = start + 1;
    for (size_t at = low; at < sorted.size(); at += step, step *= 2) {
      if (!below(sorted[at])) {
        high = at;
        break;
      }
      low = at + 1;
    }
  } else {
    high = start;
    for (size_t at = start; at > 0; step *= 2) {
      at -= std::min(at, step);
      if (below(sorted[at])) {
        low = at + 1;
        break;
      }
      high = at;
    }
  }
  return static_cast<size_t>(std::partition_point(sorted.begin() + static_cast<ptrdiff_t>(low),
                                                  sorted.begin() + static_cast<ptrdiff_t>(high),
                                                  below) -
                             sorted.begin());
}

class ConflictEdges {
 public:
  ConflictEdges(const Relation& relation, EventGraph* graph, uint64_t max_undirected)
      : relation_(relation), graph_(graph), budget_(max_undirected) {}

  // Edges between e and the accesses of another thread in `list`.
  void add(uint32_t e, ThreadId other, TimedList* list) {
    const std::vector<uint32_t>& events = *list->events;
    const int64_t lo = relation_.lo(e);
    const int64_t directed = directed_from(relation_, e);
    list->begin =
        partition_near(list->settled, list->begin, [&](int64_t time) { return time < lo; });
    list->end =
        partition_near(list->earliest, list->end, [&](int64_t time) { return time <= directed; });
    if (list->begin > 0) {
      // The accesses of one thread to one location are ordered: the latest stands for all.
      graph_->directed.push_back({events[list->begin - 1], e});
    }
    for (size_t i = list->begin; i < list->end; ++i) {
      if (budget_ == 0) {
        graph_->complete = false;
        return;
      }
      switch (relation_.between(events[i], e)) {
        case Order::kBefore:
          graph_->directed.push_back({events[i], e});
          break;
        case Order::kUndirected:
          if (other < relation_.trace().events[e].thread) {
            graph_->undirected.push_back({events[i], e});
            --budget_;
          }
          break;
        default:
          break;
      }
    }
  }

 private:
  const Relation& relation_;
  EventGraph* graph_;
  uint64_t budget_;
};

void add_conflicts(const Relation& relation, const AccessIndex& accesses, uint64_t max_undirected,
                   EventGraph* graph) {
  const LocationTable& locations = relation.locations();
  TimedIndex index(relation, accesses);
  ConflictEdges edges(relation, graph, max_undirected);
  for (uint32_t e = 0; e < relation.trace().events.size(); ++e) {
    const LocationId location = locations.of_event(e);
    if (location == LocationTable::kNone) {
      continue;
    }
    for (const LocationId other : locations.overlapping(location)) {
      for (TimedAccesses& theirs : index.at(other)) {
        if (theirs.thread == relation.trace().events[e].thread) {
          continue;
        }
        edges.add(e, theirs.thread, &theirs.writes);
        if (!relation.only_reads(e)) {
          edges.add(e, theirs.thread, &theirs.reads);
        }
      }
    }
  }
}

// fork -> the child's events up to its first drain; the child's events from its last drain -> join.
void add_thread_edges(const Relation& relation, const std::vector<std::vector<uint32_t>>& threads,
                      EventGraph* graph) {
  const Trace& trace = relation.trace();
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if (event.address >= threads.size() || event.address == event.thread) {
      continue;
    }
    const auto& child = threads[event.address];
    if (event.kind() == EventKind::kFork) {
      for (size_t i = 0; i < child.size(); ++i) {
        graph->directed.push_back({e, child[i]});
        if (relation.drains(child[i])) {
          break;
        }
      }
    } else if (event.kind() == EventKind::kJoin) {
      for (size_t i = child.size(); i-- > 0;) {
        graph->directed.push_back({child[i], e});
        if (relation.drains(child[i])) {
          break;
        }
      }
    }
  }
}

// The same pairs when nothing is known of their order.
void add_open_thread_edges(const Relation& relation,
                           const std::vector<std::vector<uint32_t>>& threads,
                           uint64_t max_undirected, EventGraph* graph) {
  const Trace& trace = relation.trace();
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    const Event& event = trace.events[e];
    if ((event.kind() != EventKind::kFork && event.kind() != EventKind::kJoin) ||
        event.address >= threads.size() || event.address == event.thread) {
      continue;
    }
    for (const uint32_t child : threads[event.address]) {
      if (graph->undirected.size() >= max_undirected) {
        graph->complete = false;
        return;
      }
      graph->undirected.push_back({e, child});
    }
  }
}

}  // namespace

AccessIndex::AccessIndex(const Relation& relation) : lists_(relation.locations().size()) {
  for (uint32_t e = 0; e < relation.trace().events.size(); ++e) {
    const LocationId location = relation.locations().of_event(e);
    if (location == LocationTable::kNone) {
      continue;
    }
    const ThreadId thread = relation.trace().events[e].thread;
    auto& lists = lists_[location];
    auto list = std::find_if(lists.begin(), lists.end(),
                             [&](const ThreadAccesses& one) { return one.thread == thread; });
    if (list == lists.end()) {
      list = lists.insert(list, ThreadAccesses{thread, {}, {}});
    }
    (relation.only_reads(e) ? list->reads : list->writes).push_back(e);
  }
}

EventGraph build_event_graph(const Relation& relation, const AccessIndex& accesses,
                             uint64_t max_undirected) {
  EventGraph graph;
  const Trace& trace = relation.trace();
  graph.directed.reserve(4 * trace.events.size());
  std::vector<std::vector<uint32_t>> threads;
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (is(trace.events[e], kinds::kNodes)) {
      if (trace.events[e].thread >= threads.size()) {
        threads.resize(trace.events[e].thread + 1);
      }
      threads[trace.events[e].thread].push_back(e);
    }
  }
  for (const auto& thread : threads) {
    ThreadOrder order(relation, &graph.directed);
    for (const uint32_t e : thread) {
      order.add(e);
    }
  }
  if (relation.options().thread_order) {
    add_thread_edges(relation, threads, &graph);
  } else {
    add_open_thread_edges(relation, threads, max_undirected, &graph);
  }
  for (uint32_t e = 0; e < trace.events.size(); ++e) {
    if (relation.lock_source(e) != kNone) {
      graph.directed.push_back({relation.lock_source(e), e});
    }
  }
  add_conflicts(relation, accesses, max_undirected, &graph);
  return graph;
}

}  // namespace tsomon
