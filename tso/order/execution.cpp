#include "tso/order/execution.h"

#include <algorithm>

#include "tso/order/reachability.h"
#include "tso/support/flat_map.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Node 2i is the issue of slice event i, node 2i+1 its commit.
uint32_t issue(uint32_t i) { return 2 * i; }

}  // namespace

SliceSteps::SliceSteps(const Relation& relation, const std::vector<uint32_t>& slice)
    : relation_(relation), window_(slice) {
  order_threads();
  order_conflicts();
}

uint32_t SliceSteps::index(uint32_t e) const {
  return static_cast<uint32_t>(std::lower_bound(window_.begin(), window_.end(), e) -
                               window_.begin());
}

bool SliceSteps::commits_later(uint32_t i) const {
  return relation_.options().model == MemoryModel::kTso && relation_.is_store(window_[i]);
}

// The step at which the event takes effect in memory (for a load: reads it).
uint32_t SliceSteps::effect(uint32_t i) const { return commits_later(i) ? 2 * i + 1 : 2 * i; }

// i comes before j: a forwarded load takes effect when it is issued and its source has committed,
// whichever is later.
StepOrder::Alternatives SliceSteps::alternatives(uint32_t i, uint32_t j) const {
  using Way = StepOrder::Way;
  const Edge plain{effect(i), effect(j)};
  if (const uint32_t source = relation_.source(window_[j]); source != Relation::kNever) {
    return {Way{Edge{effect(i), effect(index(source))}}, Way{plain}};
  }
  if (const uint32_t source = relation_.source(window_[i]); source != Relation::kNever) {
    return {Way{Edge{effect(index(source)), effect(j)}, plain}};
  }
  return {Way{plain}};
}

void SliceSteps::order_threads() {
  std::vector<std::vector<uint32_t>> threads;
  for (uint32_t i = 0; i < window_.size(); ++i) {
    const ThreadId thread = relation_.trace().events[window_[i]].thread;
    if (thread >= threads.size()) {
      threads.resize(thread + 1);
    }
    threads[thread].push_back(i);
  }
  const auto position = [&](uint32_t i) { return relation_.position(window_[i]); };
  for (const auto& members : threads) {
    uint32_t last_store = Relation::kNever;
    for (size_t at = 0; at < members.size(); ++at) {
      const uint32_t i = members[at];
      if (at > 0) {
        edges_.push_back({issue(members[at - 1]), issue(i)});
      }
      if (!commits_later(i)) {
        continue;
      }
      edges_.push_back({issue(i), effect(i)});
      if (last_store != Relation::kNever) {
        edges_.push_back({effect(last_store), effect(i)});
      }
      last_store = i;
      // What makes the store visible may itself lie outside the slice: the next event inside counts.
      const uint32_t visible_by = relation_.visible_by(window_[i]);
      if (visible_by == Relation::kNever) {
        continue;
      }
      const auto next = std::partition_point(
          members.begin() + static_cast<ptrdiff_t>(at) + 1, members.end(),
          [&](uint32_t j) { return position(j) < relation_.position(visible_by); });
      if (next != members.end()) {
        edges_.push_back({effect(i), issue(*next)});
      }
    }
  }
}

// Only events on common bytes, and a thread's events and its start and end, are ordered.
void SliceSteps::order_conflicts() {
  const LocationTable& locations = relation_.locations();
  const auto& events = relation_.trace().events;
  constexpr uint32_t kNone = Relation::kNever;
  // The events of each location as a chain, and where it is entered for what comes later.
  std::vector<uint32_t> next(window_.size(), kNone);
  FlatMap<LocationId, uint32_t> later;
  for (auto i = static_cast<uint32_t>(window_.size()); i-- > 0;) {
    if (const LocationId location = locations.of_event(window_[i]);
        location != LocationTable::kNone) {
      const auto [first, is_new] = later.try_emplace(location, i);
      if (!is_new) {
        next[i] = *first;
        *first = i;
      }
    }
  }
  for (uint32_t i = 0; i < window_.size(); ++i) {
    const Event& event = events[window_[i]];
    if (event.kind() == EventKind::kFork || event.kind() == EventKind::kJoin) {
      spend(window_.size());
      for (uint32_t j = 0; j < window_.size(); ++j) {
        if (events[window_[j]].thread == event.address && event.thread != event.address) {
          order_pair(std::min(i, j), std::max(i, j));
        }
      }
    }
    const LocationId location = locations.of_event(window_[i]);
    if (location == LocationTable::kNone) {
      continue;
    }
    later[location] = next[i];
    const bool only_reads = relation_.only_reads(window_[i]);
    for (const LocationId other : locations.overlapping(location)) {
      const uint32_t* const first = later.find(other);
      for (uint32_t j = first == nullptr ? kNone : *first; j != kNone; j = next[j]) {
        spend(4);
        if (events[window_[j]].thread != event.thread &&
            !(only_reads && relation_.only_reads(window_[j]))) {
          order_pair(i, j);
        }
      }
    }
  }
}

void SliceSteps::order_pair(uint32_t i, uint32_t j) {
  const uint32_t e = window_[i];
  const uint32_t f = window_[j];
  const Order order = relation_.between(e, f);
  if (order == Order::kBefore) {
    edges_.push_back({effect(i), issue(j)});
  } else if (order == Order::kAfter) {
    edges_.push_back({effect(j), issue(i)});
  } else if (order == Order::kUndirected) {
    undirected_.push_back({i, j});
  }
  if (!relation_.conflict(e, f)) {
    return;
  }
  if (relation_.certainly_before(e, f)) {
    edges_.push_back({issue(i), issue(j)});
  } else if (relation_.certainly_before(f, e)) {
    edges_.push_back({issue(j), issue(i)});
  }
}

void SliceSteps::orient(const OrientationOracle& before, bool partial, StepOrder* result) const {
  result->nodes = static_cast<uint32_t>(window_.size()) * 2;
  result->edges.reserve(edges_.size() + undirected_.size());
  result->edges = edges_;
  spend(edges_.size() + 4 * undirected_.size());
  for (const Pair& pair : undirected_) {
    const Order chosen = before(window_[pair.i], window_[pair.j]);
    if (chosen == Order::kBefore) {
      orient_conflict(pair.i, pair.j, before, partial, result);
    } else if (chosen == Order::kAfter) {
      orient_conflict(pair.j, pair.i, before, partial, result);
    }
  }
}

// i comes before j. `partial`: what is open stays open.
void SliceSteps::orient_conflict(uint32_t i, uint32_t j, const OrientationOracle& before,
                                 bool partial, StepOrder* result) const {
  const uint32_t source = relation_.source(window_[j]);
  if (source != Relation::kNever && comes_before(relation_, before, window_[i], source)) {
    return;  // j reads its own store or something newer, wherever that store commits
  }
  const Edge plain{effect(i), effect(j)};
  if (partial && source != Relation::kNever &&
      relation_.between(window_[i], source) == Order::kUndirected &&
      before(window_[i], source) == Order::kNone) {
    result->either.push_back({{effect(i), effect(index(source))}, plain});
    return;
  }
  result->edges.push_back(plain);
}

StepOrder SliceSteps::order(const OrientationOracle& before, const std::vector<Edge>& open) const {
  StepOrder result;
  orient(before, true, &result);
  result.before.reserve(open.size());
  result.after.reserve(open.size());
  for (const Edge& pair : open) {
    const uint32_t i = index(pair.from);
    const uint32_t j = index(pair.to);
    result.before.push_back(alternatives(i, j));
    result.after.push_back(alternatives(j, i));
  }
  return result;
}

bool SliceSteps::realisable(const OrientationOracle& before) const {
  StepOrder oriented;
  orient(before, false, &oriented);
  const Adjacency successors(oriented.nodes, oriented.edges);
  std::vector<uint32_t> missing(oriented.nodes, 0);
  for (const Edge& edge : oriented.edges) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> ready;
  ready.reserve(oriented.nodes);
  for (uint32_t node = 0; node < oriented.nodes; ++node) {
    if (missing[node] == 0) {
      ready.push_back(node);
    }
  }
  for (size_t at = 0; at < ready.size(); ++at) {
    for (const uint32_t next : successors.successors(ready[at])) {
      if (--missing[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  return ready.size() == oriented.nodes;
}

std::optional<std::vector<Step>> SliceSteps::realise(const OrientationOracle& before) const {
  StepOrder oriented;
  orient(before, false, &oriented);
  const std::vector<uint32_t> order = smallest_first(Adjacency(oriented.nodes, oriented.edges));
  if (order.size() != oriented.nodes) {
    return std::nullopt;
  }
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (const uint32_t node : order) {
    const uint32_t i = node / 2;
    if (node % 2 == 0) {
      steps.push_back({false, window_[i]});
      if (relation_.options().model == MemoryModel::kSc && relation_.is_store(window_[i])) {
        steps.push_back({true, window_[i]});
      }
    } else if (commits_later(i)) {
      steps.push_back({true, window_[i]});
    }
  }
  return steps;
}

bool comes_before(const Relation& relation, const OrientationOracle& before, uint32_t e,
                  uint32_t f) {
  const Order order = relation.between(e, f);
  return order == Order::kBefore || (order == Order::kUndirected && before(e, f) == Order::kBefore);
}

std::optional<std::vector<Step>> realise(const Relation& relation,
                                         const std::vector<uint32_t>& slice,
                                         const OrientationOracle& before) {
  return SliceSteps(relation, slice).realise(before);
}

}  // namespace tsomon
