#include "offline/check/component_steps.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "tso/order/reachability.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kNever = Relation::kNever;

// The accesses of one thread to one location, and the least end of an interval from each on.
struct IssueList {
  std::vector<uint32_t> events;
  std::vector<int64_t> least_hi;

  void prepare(const Relation& relation) {
    least_hi.resize(events.size());
    int64_t least = kTimeMax;
    for (size_t i = events.size(); i-- > 0;) {
      least = std::min(least, relation.hi(events[i]));
      least_hi[i] = least;
    }
  }
  // The last one that has certainly happened before `time`.
  uint32_t last_before(int64_t time) const {
    const auto after = std::lower_bound(least_hi.begin(), least_hi.end(), time);
    return after == least_hi.begin() ? kNever
                                     : events[static_cast<size_t>(after - least_hi.begin()) - 1];
  }
};

struct LocationLists {
  IssueList writes;
  IssueList reads;
};

}  // namespace

std::optional<ComponentSteps> ComponentSteps::build(const ComponentQuestion& question,
                                                    uint64_t max_bytes) {
  ComponentSteps steps(question);
  steps.collect_events();
  const uint64_t bytes = uint64_t{4} * steps.chains_ * steps.steps();
  if (bytes > max_bytes) {
    return std::nullopt;
  }
  steps.order_threads();
  if (question.relation.options().order == TraceOrder::kIssue) {
    steps.order_issues();
  }
  if (!steps.order_directed()) {
    return std::nullopt;
  }
  return steps;
}

void ComponentSteps::collect_events() {
  for (const UnitId unit : question_.members) {
    for (uint32_t e = question_.units[unit].first_event; e <= question_.units[unit].last_event;
         ++e) {
      if (question_.units.of_event(e) == unit && question_.fences.relevant(e)) {
        events_.push_back(e);
      }
    }
  }
  std::sort(events_.begin(), events_.end());
  std::map<ThreadId, uint32_t> threads;
  for (uint32_t i = 0; i < events_.size(); ++i) {
    local_[events_[i]] = i;
    const ThreadId thread = question_.relation.trace().events[events_[i]].thread;
    const auto [at, is_new] = threads.try_emplace(thread, static_cast<uint32_t>(threads.size()));
    if (is_new) {
      threads_.emplace_back();
    }
    threads_[at->second].push_back(i);
    chain_.push_back(2 * at->second);
    index_.push_back(static_cast<uint32_t>(threads_[at->second].size()));
    key_.push_back(2 * i);
  }
  chains_ = 2 * static_cast<uint32_t>(threads_.size());
  commit_.resize(events_.size());
  for (uint32_t t = 0; t < threads_.size(); ++t) {
    uint32_t stores = 0;
    for (const uint32_t i : threads_[t]) {
      commit_[i] = i;
      if (question_.relation.is_store(events_[i])) {
        commit_[i] = steps();
        chain_.push_back(2 * t + 1);
        index_.push_back(++stores);
        key_.push_back(2 * i + 1);
      }
    }
  }
}

void ComponentSteps::order_threads() {
  const Relation& relation = question_.relation;
  for (const auto& thread : threads_) {
    std::deque<uint32_t> buffer;
    uint32_t last_store = kNever;
    for (size_t at = 0; at < thread.size(); ++at) {
      const uint32_t i = thread[at];
      if (at > 0) {
        edges_.push_back({thread[at - 1], i});
      }
      uint32_t committed = kNever;
      while (!buffer.empty()) {
        const uint32_t by = relation.visible_by(events_[buffer.front()]);
        if (by == kNever || relation.position(by) > relation.position(events_[i])) {
          break;
        }
        committed = buffer.front();
        buffer.pop_front();
      }
      if (committed != kNever) {
        edges_.push_back({commit_[committed], i});
      }
      if (commit_[i] != i) {
        edges_.push_back({i, commit_[i]});
        if (last_store != kNever) {
          edges_.push_back({commit_[last_store], commit_[i]});
        }
        last_store = i;
        buffer.push_back(i);
      }
    }
  }
}

// Conflicting events keep the order in which the trace certainly shows them issued.
void ComponentSteps::order_issues() {
  const Relation& relation = question_.relation;
  const LocationTable& locations = relation.locations();
  std::unordered_map<LocationId, std::map<ThreadId, LocationLists>> index;
  for (const uint32_t e : events_) {
    const LocationId location = locations.of_event(e);
    if (location != LocationTable::kNone) {
      LocationLists& lists = index[location][relation.trace().events[e].thread];
      (relation.only_reads(e) ? lists.reads : lists.writes).events.push_back(e);
    }
  }
  for (auto& [location, threads] : index) {
    for (auto& [thread, lists] : threads) {
      lists.writes.prepare(relation);
      lists.reads.prepare(relation);
    }
  }
  for (const uint32_t f : events_) {
    const LocationId location = locations.of_event(f);
    if (location == LocationTable::kNone) {
      continue;
    }
    for (const LocationId other : locations.overlapping(location)) {
      const auto threads = index.find(other);
      if (threads == index.end()) {
        continue;
      }
      spend(8 * threads->second.size());
      for (const auto& [thread, lists] : threads->second) {
        if (thread == relation.trace().events[f].thread) {
          continue;
        }
        for (const IssueList* list : {&lists.writes, &lists.reads}) {
          const uint32_t e = list->last_before(relation.lo(f));
          if (e != kNever && relation.conflict(e, f)) {
            edges_.push_back({issue(e), issue(f)});
          }
        }
      }
    }
  }
}

bool ComponentSteps::order_directed() {
  const Relation& relation = question_.relation;
  std::vector<StepOrder::Alternatives> unclear;
  for (const uint32_t e : events_) {
    for (const uint32_t f : question_.graph.order.edges().successors(e)) {
      if (relation.trace().events[e].thread == relation.trace().events[f].thread ||
          !local_.contains(f)) {
        continue;
      }
      if (relation.between(e, f) == Order::kBefore) {
        edges_.push_back({effect(e), issue(f)});
        continue;
      }
      StepOrder::Alternatives ways = alternatives(e, f);
      if (ways.size() == 1) {
        edges_.insert(edges_.end(), ways.front().begin(), ways.front().end());
      } else {
        unclear.push_back(ways);
      }
    }
  }
  for (;;) {
    if (!compute_clocks()) {
      return false;
    }
    const size_t before = unclear.size();
    bool contradiction = false;
    std::erase_if(unclear, [&](StepOrder::Alternatives& ways) {
      const auto all = [&](const StepOrder::Way& way, const auto& holds) {
        return std::all_of(way.begin(), way.end(), holds);
      };
      if (std::any_of(ways.begin(), ways.end(), [&](const auto& way) {
            return all(way, [&](const Edge& edge) { return reaches(edge.from, edge.to); });
          })) {
        return true;
      }
      ways.erase_if([&](const StepOrder::Way& way) {
        return !all(way, [&](const Edge& edge) { return !reaches(edge.to, edge.from); });
      });
      contradiction = contradiction || ways.empty();
      if (ways.size() == 1) {
        edges_.insert(edges_.end(), ways.front().begin(), ways.front().end());
      }
      return ways.size() <= 1;
    });
    if (contradiction) {
      return false;
    }
    if (unclear.size() == before) {
      return unclear.empty();
    }
  }
}

bool ComponentSteps::compute_clocks() {
  const Adjacency successors(steps(), edges_);
  clocks_.assign(static_cast<size_t>(steps()) * chains_, 0);
  std::vector<uint32_t> missing(steps(), 0);
  for (const Edge& edge : edges_) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> ready;
  for (uint32_t step = 0; step < steps(); ++step) {
    if (missing[step] == 0) {
      ready.push_back(step);
    }
  }
  for (size_t at = 0; at < ready.size(); ++at) {
    const uint32_t step = ready[at];
    uint32_t* mine = &clocks_[static_cast<size_t>(step) * chains_];
    mine[chain_[step]] = index_[step];
    spend((1 + chains_ / 8) * (1 + successors.successors(step).size()));
    for (const uint32_t next : successors.successors(step)) {
      uint32_t* theirs = &clocks_[static_cast<size_t>(next) * chains_];
      for (uint32_t chain = 0; chain < chains_; ++chain) {
        theirs[chain] = std::max(theirs[chain], mine[chain]);
      }
      if (--missing[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  return ready.size() == steps();
}

StepOrder::Alternatives ComponentSteps::alternatives(uint32_t e, uint32_t f) const {
  using Way = StepOrder::Way;
  // A forwarded load takes effect when it is issued and its source has committed.
  if (const uint32_t source = question_.relation.source(f); source != kNever) {
    return {Way{Edge{effect(e), effect(source)}}, Way{Edge{effect(e), issue(f)}}};
  }
  if (const uint32_t source = question_.relation.source(e); source != kNever) {
    return {Way{Edge{effect(source), effect(f)}, Edge{issue(e), effect(f)}}};
  }
  return {Way{Edge{effect(e), effect(f)}}};
}

std::optional<std::vector<uint32_t>> ComponentSteps::schedule(
    const std::vector<Edge>& extra) const {
  spend(16 * (edges_.size() + steps()));
  std::vector<Edge> edges = edges_;
  edges.insert(edges.end(), extra.begin(), extra.end());
  const std::vector<uint32_t> order = smallest_first(Adjacency(steps(), edges), key_);
  if (order.size() != steps()) {
    return std::nullopt;
  }
  std::vector<uint32_t> place(steps());
  for (uint32_t i = 0; i < steps(); ++i) {
    place[order[i]] = i;
  }
  return place;
}

}  // namespace tsomon
