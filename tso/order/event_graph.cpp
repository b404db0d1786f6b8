#include "tso/order/event_graph.h"

#include <algorithm>
#include <utility>

#include "tso/support/flat_map.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// The directed edges among the events of one thread, one event at a time in program order.
class ThreadEdges {
 public:
  ThreadEdges(const Relation& relation, std::vector<Edge>* edges)
      : relation_(relation), edges_(edges) {}

  void add(uint32_t e) {
    release_visible(e);
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
        pending_.clear();
        visible_store_ = kNone;
      } else {
        newest_store_[relation_.locations().of_event(e)] = e;
        pending_.push_back(e);
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
    spend(from->size());
    for (const uint32_t e : *from) {
      link(e, to);
    }
    from->clear();
  }

  // Stores that have certainly committed when e completes, although no fence came: they and the
  // loads forwarded from them come before every later load.
  void release_visible(uint32_t e) {
    size_t count = 0;
    while (count < pending_.size()) {
      const uint32_t by = relation_.visible_by(pending_[count]);
      if (by == kNone || relation_.position(by) > relation_.position(e)) {
        break;
      }
      visible_store_ = pending_[count++];
    }
    if (count == 0) {
      return;
    }
    spend(pending_.size() + recent_forwarded_.size());
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count));
    for (const uint32_t load : recent_forwarded_) {
      const uint32_t by = relation_.visible_by(load);
      if (by != kNone && relation_.position(by) <= relation_.position(e)) {
        released_.push_back(load);
      }
    }
    std::erase_if(recent_forwarded_, [&](uint32_t load) {
      const uint32_t by = relation_.visible_by(load);
      return by != kNone && relation_.position(by) <= relation_.position(e);
    });
  }

  void add_load(uint32_t e) {
    link(last_load_ != kNone ? last_load_ : last_drain_, e);
    link(visible_store_, e);
    const LocationId here = relation_.locations().of_event(e);
    if (here != LocationTable::kNone) {
      spend(relation_.locations().overlapping(here).size());
      for (const LocationId other : relation_.locations().overlapping(here)) {
        for (const auto* newest : {&newest_store_, &newest_forwarded_}) {
          if (const uint32_t* const at = newest->find(other)) {
            link(*at, e);
          }
        }
      }
    }
    if (relation_.source(e) == kNone) {
      link_all(&released_, e);
      last_load_ = e;
    } else {
      spend(released_.size());
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
  uint32_t visible_store_ = kNone;  // newest store that has committed without a fence
  std::vector<uint32_t> pending_;
  std::vector<uint32_t> forwarded_;         // buffered loads not yet linked to a later store
  std::vector<uint32_t> recent_forwarded_;  // buffered loads whose source is not visible yet
  std::vector<uint32_t> released_;          // buffered loads whose source has
  FlatMap<LocationId, uint32_t> newest_store_;
  FlatMap<LocationId, uint32_t> newest_forwarded_;
};

int64_t directed_from(const Relation& relation, uint32_t e) {
  return std::max(relation.hi(e), relation.visible_at(e));
}

// As std::partition_point() over a sorted list, found in steps that double from where the last
// answer was: events that come one after the other have answers that do.
template <typename Below>
size_t partition_near(std::span<const int64_t> sorted, size_t start, const Below& below) {
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

// One list of an AccessIndex with what is needed to find the relevant slice of it.
struct TimedList {
  std::span<const uint32_t> events;
  std::span<int64_t> visible;   // running maximum of when each is directed to later events
  std::span<int64_t> earliest;  // minimum of lo from here on
  size_t begin = 0;             // of the slice that was looked for last
  size_t end = 0;

  // The slice of what is certainly neither before nor after an event.
  std::pair<size_t, size_t> open_around(int64_t lo, int64_t directed) {
    begin = partition_near(visible, begin, [&](int64_t time) { return time < lo; });
    end = partition_near(earliest, end, [&](int64_t time) { return time <= directed; });
    return {begin, end};
  }
};

// The lists of all locations. Everything here goes through the trace from one end to the other,
// not through one location after the other: what is used together lies together.
class TimedIndex {
 public:
  TimedIndex(const Relation& relation, const AccessIndex& accesses)
      : accesses_(accesses),
        visible_(accesses.events().size()),
        earliest_(visible_.size()),
        lists_(accesses.lists()) {
    for (uint32_t number = 0; number < lists_.size(); ++number) {
      TimedList& list = lists_[number];
      list.events = accesses.list(number);
      const auto first = static_cast<size_t>(list.events.data() - accesses.events().data());
      list.visible = {visible_.data() + first, list.events.size()};
      list.earliest = {earliest_.data() + first, list.events.size()};
      list.end = list.events.size();  // until they are built: the next place, of either array
    }
    if (relation.options().order != TraceOrder::kIssue) {
      std::fill(visible_.begin(), visible_.end(), kTimeMax);
      std::fill(earliest_.begin(), earliest_.end(), kTimeMin);
      return;
    }
    const auto n = static_cast<uint32_t>(relation.trace().events.size());
    for (uint32_t e = 0; e < n; ++e) {
      if (TimedList* const list = list_of(e)) {
        const int64_t before = list->begin == 0 ? kTimeMin : list->visible[list->begin - 1];
        list->visible[list->begin++] = std::max(before, directed_from(relation, e));
      }
    }
    for (uint32_t e = n; e-- > 0;) {
      if (TimedList* const list = list_of(e)) {
        const int64_t after =
            list->end == list->events.size() ? kTimeMax : list->earliest[list->end];
        list->earliest[--list->end] = std::min(after, relation.lo(e));
      }
    }
    for (TimedList& list : lists_) {
      list.begin = 0;
    }
  }

  TimedList& operator[](uint32_t number) { return lists_[number]; }

 private:
  TimedList* list_of(uint32_t e) {
    const uint32_t number = accesses_.list_of(e);
    return number == AccessIndex::kNone ? nullptr : &lists_[number];
  }

  const AccessIndex& accesses_;
  std::vector<int64_t> visible_;
  std::vector<int64_t> earliest_;
  std::vector<TimedList> lists_;
};

class ConflictEdges {
 public:
  ConflictEdges(const Relation& relation, EventGraph* graph, uint64_t max_undirected)
      : relation_(relation), graph_(graph), budget_(max_undirected) {}

  // Edges between e and the accesses of another thread in `list`.
  void add(uint32_t e, ThreadId other, TimedList* list) {
    const std::span<const uint32_t> events = list->events;
    const int64_t lo = relation_.lo(e);
    const int64_t directed = directed_from(relation_, e);
    list->open_around(lo, directed);
    if (list->begin > 0) {
      // The accesses of one thread to one location are ordered: the latest stands for all.
      before_.push_back({events[list->begin - 1], list->visible[list->begin - 1]});
    }
    spend(1 + 2 * (list->end - std::min(list->begin, list->end)));
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

  // The edges of e that add() has left, from events that were over before it began. Where many
  // threads access a location, most of them come before a store to it that comes before e, too.
  void link_before(uint32_t e, LocationId location) {
    int64_t latest = kTimeMin;
    if (before_.size() > kFewThreads) {
      for (const Before& one : before_) {
        if (relation_.locations().of_event(one.event) == location &&
            !relation_.only_reads(one.event)) {
          latest = std::max(latest, relation_.lo(one.event));
        }
      }
    }
    for (const Before& one : before_) {
      if (one.visible >= latest) {
        graph_->directed.push_back({one.event, e});
      }
    }
    before_.clear();
  }

 private:
  static constexpr size_t kFewThreads = 16;
  struct Before {
    uint32_t event;
    int64_t visible;  // it, and all before it in its list, come before what begins later
  };

  const Relation& relation_;
  EventGraph* graph_;
  uint64_t budget_;
  std::vector<Before> before_;
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
    for_each_conflicting_list(relation, accesses, e, [&](uint32_t list, ThreadId thread) {
      edges.add(e, thread, &index[list]);
    });
    edges.link_before(e, location);
  }
}

bool is_node(const Relation& relation, uint32_t e) {
  return is(relation.trace().events[e], kinds::kNodes);
}

// fork -> the child's events up to its first drain; the child's events from its last drain -> join.
void add_thread_edges(const Relation& relation, EventGraph* graph) {
  const Trace& trace = relation.trace();
  for (const uint32_t e : relation.thread_events()) {
    const Event& event = trace.events[e];
    const bool forks = event.kind() == EventKind::kFork;
    if (event.address >= relation.threads() || event.address == event.thread) {
      continue;
    }
    const auto child = relation.of_thread(static_cast<ThreadId>(event.address));
    for (size_t i = 0; i < child.size(); ++i) {
      spend(1);
      const uint32_t one = forks ? child[i] : child[child.size() - 1 - i];
      if (!is_node(relation, one)) {
        continue;
      }
      graph->directed.push_back(forks ? Edge{e, one} : Edge{one, e});
      if (relation.drains(one)) {
        break;
      }
    }
  }
}

// The same pairs when nothing is known of their order.
void add_open_thread_edges(const Relation& relation, uint64_t max_undirected, EventGraph* graph) {
  const Trace& trace = relation.trace();
  for (const uint32_t e : relation.thread_events()) {
    const Event& event = trace.events[e];
    if (event.address >= relation.threads() || event.address == event.thread) {
      continue;
    }
    for (const uint32_t child : relation.of_thread(static_cast<ThreadId>(event.address))) {
      spend(1);
      if (!is_node(relation, child)) {
        continue;
      }
      if (graph->undirected.size() >= max_undirected) {
        graph->complete = false;
        return;
      }
      graph->undirected.push_back({e, child});
    }
  }
}

// Of threads, forks and joins, and the hand-overs of locks and others.
void add_certain_edges(const Relation& relation, EventGraph* graph) {
  graph->directed.reserve(4 * relation.trace().events.size());
  for (ThreadId thread = 0; thread < relation.threads(); ++thread) {
    ThreadEdges order(relation, &graph->directed);
    for (const uint32_t e : relation.of_thread(thread)) {
      if (is_node(relation, e)) {
        order.add(e);
      }
    }
  }
  if (relation.options().thread_order) {
    add_thread_edges(relation, graph);
  }
  for (const uint32_t e : relation.acquisitions()) {
    if (relation.lock_source(e) != kNone) {
      graph->directed.push_back({relation.lock_source(e), e});
    }
  }
  for (const HandOver& one : relation.hand_overs()) {
    graph->directed.push_back({one.from, one.to});
  }
}

// Accesses of one thread to one location that are ordered among each other, and from when on each
// is before what begins.
struct VisibleAccesses {
  std::vector<uint32_t> events;
  std::vector<int64_t> visible;

  // The last one that is before what begins at `lo`.
  void link(int64_t lo, uint32_t to, std::vector<Edge>* edges) const {
    const auto behind = std::lower_bound(visible.begin(), visible.end(), lo);
    if (behind != visible.begin()) {
      edges->push_back({events[static_cast<size_t>(behind - visible.begin()) - 1], to});
    }
  }
};

// From each list of an AccessIndex the latest access that is certainly before an access of another
// thread. Forwarded loads are no part of the order of the other loads.
void add_latest_before(const Relation& relation, const AccessIndex& accesses,
                       std::vector<Edge>* edges) {
  std::vector<VisibleAccesses> lists(2 * static_cast<size_t>(accesses.lists()));
  for (uint32_t number = 0; number < accesses.lists(); ++number) {
    for (const uint32_t e : accesses.list(number)) {
      lists[2 * number + (relation.source(e) == kNone ? 0 : 1)].events.push_back(e);
    }
  }
  for (VisibleAccesses& list : lists) {
    list.visible =
        earliest_from(list.events, [&](uint32_t e) { return directed_from(relation, e); });
  }
  const auto n = static_cast<uint32_t>(relation.trace().events.size());
  for (uint32_t e = 0; e < n; ++e) {
    for_each_conflicting_list(relation, accesses, e, [&](uint32_t number, ThreadId) {
      lists[2 * number].link(relation.lo(e), e, edges);
      lists[2 * number + 1].link(relation.lo(e), e, edges);
    });
  }
}

}  // namespace

AccessIndex::AccessIndex(const Relation& relation)
    : first_(relation.locations().size() + 1, 0), list_of_(relation.trace().events.size(), kNone) {
  // The threads of a location as a chain, in the order in which they were found.
  struct Found {
    ThreadId thread;
    uint32_t next;
    uint32_t sizes[2];  // writes, reads
    uint32_t number;    // in of_threads_
  };
  std::vector<Found> found;
  std::vector<uint32_t> head(relation.locations().size(), kNone);
  std::vector<uint32_t> tail(head);
  FlatMap<uint64_t, uint32_t> of_many;  // of a location and a thread, behind the first ones
  constexpr uint32_t kSearched = 16;
  uint32_t accesses = 0;
  for (uint32_t e = 0; e < list_of_.size(); ++e) {
    const LocationId location = relation.locations().of_event(e);
    if (location == LocationTable::kNone) {
      continue;
    }
    const ThreadId thread = relation.trace().events[e].thread;
    uint32_t at = head[location];
    uint32_t looked_at = 0;
    while (at != kNone && found[at].thread != thread && looked_at++ < kSearched) {
      spend(1);
      at = found[at].next;
    }
    if (at != kNone && found[at].thread != thread) {
      const uint32_t* const known = of_many.find(uint64_t{location} << 32U | thread);
      at = known == nullptr ? kNone : *known;
    }
    if (at == kNone) {
      at = static_cast<uint32_t>(found.size());
      (head[location] == kNone ? head[location] : found[tail[location]].next) = at;
      tail[location] = at;
      found.push_back({thread, kNone, {0, 0}, 0});
      if (first_[location + 1]++ >= kSearched) {
        of_many.try_emplace(uint64_t{location} << 32U | thread, at);
      }
    }
    const uint32_t reads = relation.only_reads(e) ? 1 : 0;
    ++found[at].sizes[reads];
    ++accesses;
    list_of_[e] = 2 * at + reads;
  }
  events_.resize(accesses);
  of_threads_.reserve(found.size());
  std::vector<uint32_t> next;  // place in events_, by list
  next.reserve(2 * found.size());
  uint32_t place = 0;
  for (LocationId location = 0; location < head.size(); ++location) {
    first_[location + 1] += first_[location];
    for (uint32_t at = head[location]; at != kNone; at = found[at].next) {
      found[at].number = static_cast<uint32_t>(of_threads_.size());
      const auto* const writes = events_.data() + place;
      const auto* const reads = writes + found[at].sizes[0];
      of_threads_.push_back(
          {found[at].thread, {writes, reads}, {reads, reads + found[at].sizes[1]}});
      next.insert(next.end(), {place, place + found[at].sizes[0]});
      place += found[at].sizes[0] + found[at].sizes[1];
    }
  }
  for (uint32_t e = 0; e < list_of_.size(); ++e) {
    if (list_of_[e] != kNone) {
      list_of_[e] = 2 * found[list_of_[e] / 2].number + list_of_[e] % 2;
      events_[next[list_of_[e]]++] = e;
    }
  }
}

EventGraph build_event_graph(const Relation& relation, const AccessIndex& accesses,
                             uint64_t max_undirected) {
  EventGraph graph;
  add_certain_edges(relation, &graph);
  if (!relation.options().thread_order) {
    add_open_thread_edges(relation, max_undirected, &graph);
  }
  add_conflicts(relation, accesses, max_undirected, &graph);
  return graph;
}

uint64_t estimated_open_pairs(const Relation& relation, const AccessIndex& accesses,
                              uint64_t most) {
  constexpr uint32_t kStep = 8;
  TimedIndex index(relation, accesses);
  uint64_t pairs = 0;
  for (uint32_t e = 0; e < relation.trace().events.size() && kStep * pairs / 2 < most; ++e) {
    if ((e * 0x9E3779B9U) >> 29U != 0) {  // so it is not in step with what a loop repeats
      continue;
    }
    const int64_t directed = directed_from(relation, e);
    for_each_conflicting_list(relation, accesses, e, [&](uint32_t number, ThreadId) {
      const auto [begin, end] = index[number].open_around(relation.lo(e), directed);
      pairs += end - std::min(begin, end);
    });
  }
  return kStep * pairs / 2;
}

std::vector<Edge> directed_edges(const Relation& relation, const AccessIndex& accesses) {
  EventGraph graph;
  add_certain_edges(relation, &graph);
  if (relation.options().order == TraceOrder::kIssue) {
    add_latest_before(relation, accesses, &graph.directed);
  }
  return std::move(graph.directed);
}

}  // namespace tsomon
