#include "tso/order/reachability.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "tso/support/none.h"
#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr uint32_t kNoChain = kNone;

// Calls visit(node) for each, those before it first; false: the edges have a cycle.
template <typename Visit>
bool in_topological_order(uint32_t nodes, const std::vector<Edge>& edges,
                          const Adjacency& successors, const Visit& visit) {
  std::vector<uint32_t> missing(nodes, 0);
  for (const Edge& edge : edges) {
    ++missing[edge.to];
  }
  std::vector<uint32_t> ready;
  for (uint32_t node = 0; node < nodes; ++node) {
    if (missing[node] == 0) {
      ready.push_back(node);
    }
  }
  uint32_t done = 0;
  while (!ready.empty()) {
    const uint32_t node = ready.back();
    ready.pop_back();
    ++done;
    visit(node);
    for (const uint32_t next : successors.successors(node)) {
      if (--missing[next] == 0) {
        ready.push_back(next);
      }
    }
  }
  return done == nodes;
}

// Which two chains each thread has, by number. A thread that was started after the join of others,
// by the thread that joined them, goes on with the chains of one of these: all that was there is
// before the join, that is before the start, and the start before all that comes.
std::vector<uint32_t> lanes_of(const Relation& relation) {
  const auto& events = relation.trace().events;
  const ThreadId threads = relation.threads();
  std::vector<uint32_t> lanes(threads, kNoChain);
  std::vector<std::vector<uint32_t>> left(threads);  // to each thread by those that it joined
  std::vector<bool> over(threads, false);
  uint32_t count = 0;
  for (const uint32_t e : relation.thread_events()) {
    const Event& event = events[e];
    if (!relation.options().thread_order || event.address >= threads ||
        event.address == event.thread) {
      continue;
    }
    const auto other = static_cast<ThreadId>(event.address);
    const auto theirs = relation.of_thread(other);
    std::vector<uint32_t>& mine = left[event.thread];
    if (theirs.empty() || over[other]) {
      continue;
    }
    if (event.kind() == EventKind::kJoin && theirs.back() < e) {
      over[other] = true;
      lanes[other] = lanes[other] == kNoChain ? count++ : lanes[other];
      mine.push_back(lanes[other]);
      mine.insert(mine.end(), left[other].begin(), left[other].end());
      left[other].clear();
    } else if (event.kind() == EventKind::kFork && theirs.front() > e && lanes[other] == kNoChain &&
               !mine.empty()) {
      lanes[other] = mine.back();
      mine.pop_back();
    }
  }
  for (ThreadId thread = 0; thread < threads; ++thread) {
    if (lanes[thread] == kNoChain && !relation.of_thread(thread).empty()) {
      lanes[thread] = count++;
    }
  }
  return lanes;
}

}  // namespace

Adjacency::Adjacency(size_t nodes, const std::vector<Edge>& edges)
    : first_(nodes + 1, 0), to_(edges.size()) {
  for (const Edge& edge : edges) {
    ++first_[edge.from + 1];
  }
  for (size_t i = 0; i < nodes; ++i) {
    first_[i + 1] += first_[i];
  }
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Edge& edge : edges) {
    to_[next[edge.from]++] = edge.to;
  }
}

std::vector<uint32_t> smallest_first(const Adjacency& edges, std::span<const uint32_t> keys) {
  std::vector<uint32_t> missing(edges.nodes(), 0);
  for (uint32_t node = 0; node < missing.size(); ++node) {
    for (const uint32_t next : edges.successors(node)) {
      ++missing[next];
    }
  }
  using Entry = std::pair<uint32_t, uint32_t>;  // key, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto add = [&](uint32_t node) { ready.emplace(keys.empty() ? node : keys[node], node); };
  for (uint32_t node = 0; node < missing.size(); ++node) {
    if (missing[node] == 0) {
      add(node);
    }
  }
  std::vector<uint32_t> order;
  order.reserve(missing.size());
  while (!ready.empty()) {
    const uint32_t node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (const uint32_t next : edges.successors(node)) {
      if (--missing[next] == 0) {
        add(next);
      }
    }
  }
  return order;
}

std::optional<Reachability> Reachability::build(const Relation& relation,
                                                const std::vector<Edge>& directed) {
  const auto& events = relation.trace().events;
  const auto n = static_cast<uint32_t>(events.size());
  Reachability result;
  result.edges_ = Adjacency(n, directed);
  result.chain_of_.assign(n, kNoChain);
  result.index_.assign(n, kNoChain);

  const std::vector<uint32_t> lanes = lanes_of(relation);
  std::vector<uint32_t> lengths(2 * lanes.size(), 0);
  const bool sc = relation.options().model == MemoryModel::kSc;
  for (uint32_t e = 0; e < n; ++e) {
    if (!is(events[e], kinds::kNodes) || relation.source(e) != Relation::kNever) {
      continue;
    }
    const bool store = sc || relation.drains(e) || relation.is_store(e);
    const uint32_t chain = lanes[events[e].thread] * 2 + (store ? 0 : 1);
    result.chains_ = std::max(result.chains_, chain + 1);
    result.chain_of_[e] = chain;
    result.index_[e] = ++lengths[chain];
  }

  const size_t width = result.chains_;
  expect_bytes(sizeof(uint32_t) * static_cast<uint64_t>(n) * width);
  spend(static_cast<uint64_t>(n) * (8 + width / 8) + directed.size());
  result.clocks_.assign(static_cast<size_t>(n) * width, 0);
  const auto visit = [&](uint32_t e) {
    uint32_t* const mine = result.clocks_.data() + e * width;
    if (result.chain_of_[e] != kNoChain) {
      uint32_t& own = mine[result.chain_of_[e]];
      own = std::max(own, result.index_[e]);
    }
    spend((1 + width / 8) * result.edges_.successors(e).size());
    for (const uint32_t next : result.edges_.successors(e)) {
      uint32_t* const theirs = result.clocks_.data() + next * width;
      // All that comes before e does already, if e does by way of another event.
      if (result.chain_of_[e] != kNoChain && theirs[result.chain_of_[e]] >= result.index_[e]) {
        continue;
      }
      for (size_t chain = 0; chain < width; ++chain) {
        theirs[chain] = std::max(theirs[chain], mine[chain]);
      }
    }
  };
  if (std::all_of(directed.begin(), directed.end(),
                  [](const Edge& edge) { return edge.from < edge.to; })) {
    for (uint32_t e = 0; e < n; ++e) {
      visit(e);
    }
  } else if (!in_topological_order(n, directed, result.edges_, visit)) {
    return std::nullopt;
  }
  result.find_forwarded(relation);
  return result;
}

// What is directly after a forwarded load, or after forwarded loads that follow it. Between
// forwarded loads there are edges only within a thread, in program order: from back to front all is
// known.
void Reachability::find_forwarded(const Relation& relation) {
  const LocationTable& locations = relation.locations();
  // Locations connected by overlaps, by their least member.
  std::vector<LocationId> ranges(locations.size());
  for (LocationId location = 0; location < ranges.size(); ++location) {
    ranges[location] = location;
  }
  const auto root = [&](LocationId location) {
    while (ranges[location] != location) {
      location = ranges[location] = ranges[ranges[location]];
    }
    return location;
  };
  for (LocationId location = 0; location < ranges.size(); ++location) {
    spend(locations.overlapping(location).size());
    for (const LocationId other : locations.overlapping(location)) {
      const LocationId one = root(location);
      const LocationId two = root(other);
      ranges[std::max(one, two)] = std::min(one, two);
    }
  }
  const auto& events = relation.trace().events;
  std::vector<Edge> back;
  for (auto e = static_cast<uint32_t>(events.size()); e-- > 0;) {
    if (!is(events[e], kinds::kNodes) || chain_of_[e] != kNoChain) {
      continue;
    }
    const LocationId here = locations.of_event(e);
    Forwarded load{first_.size(), events[e].thread, root(here),
                   locations.overlapping(here).size() == 1};
    first_.resize(first_.size() + chains_, kNoChain);
    index_[e] = static_cast<uint32_t>(forwarded_.size());
    uint32_t* const mine = first_.data() + load.row;
    spend((1 + chains_ / 8) * (1 + edges_.successors(e).size()));
    for (const uint32_t next : edges_.successors(e)) {
      if (chain_of_[next] != kNoChain) {
        mine[chain_of_[next]] = std::min(mine[chain_of_[next]], index_[next]);
        continue;
      }
      back.push_back({next, e});
      TSOMON_CHECK(next > e, "forwarded loads out of program order");
      ranges_mix_ = ranges_mix_ || forwarded_[index_[next]].ranges != load.ranges;
      const uint32_t* const theirs = first_.data() + forwarded_[index_[next]].row;
      for (uint32_t chain = 0; chain < chains_; ++chain) {
        mine[chain] = std::min(mine[chain], theirs[chain]);
      }
    }
    forwarded_.push_back(load);
  }
  lines_back_ = Adjacency(back.empty() ? 0 : events.size(), back);
}

bool Reachability::insert(Edge edge) {
  if (edge.from == edge.to || reaches(edge.to, edge.from)) {
    return false;
  }
  last_inserted_.resize(edges_.nodes(), kNone);
  before_inserted_.push_back(last_inserted_[edge.from]);
  last_inserted_[edge.from] = static_cast<uint32_t>(inserted_.size());
  inserted_.push_back(edge);
  if (chain_of_[edge.from] == kNoChain) {
    reach_from_line(edge.from, edge.to);
  }
  std::vector<Edge> open{edge};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    spend(1 + chains_ / 8);
    const uint32_t* const theirs = clocks_.data() + from * static_cast<size_t>(chains_);
    uint32_t* const mine = clocks_.data() + to * static_cast<size_t>(chains_);
    bool later = false;
    for (uint32_t chain = 0; chain < chains_; ++chain) {
      later = later || mine[chain] < theirs[chain];
      mine[chain] = std::max(mine[chain], theirs[chain]);
    }
    if (!later) {
      continue;
    }
    for (const uint32_t next : edges_.successors(to)) {
      open.push_back({to, next});
    }
    for (uint32_t i = last_inserted_[to]; i != kNone; i = before_inserted_[i]) {
      open.push_back({to, inserted_[i].to});
    }
  }
  return true;
}

// A forwarded load, and those that reach it through nothing but forwarded loads, come before `to`.
void Reachability::reach_from_line(uint32_t load, uint32_t to) {
  TSOMON_CHECK(chain_of_[to] != kNoChain, "an edge between forwarded loads");
  const uint32_t chain = chain_of_[to];
  std::vector<uint32_t> open{load};
  while (!open.empty()) {
    const uint32_t e = open.back();
    open.pop_back();
    spend(1);
    uint32_t& first = first_[forwarded_[index_[e]].row + chain];
    if (first <= index_[to]) {
      continue;
    }
    first = index_[to];
    if (e < lines_back_.nodes()) {
      const auto before = lines_back_.successors(e);
      open.insert(open.end(), before.begin(), before.end());
    }
  }
}

void Reachability::put_together() {
  if (inserted_.empty()) {
    return;
  }
  std::vector<Edge> all = std::move(inserted_);
  all.reserve(all.size() + edges_.size());
  for (uint32_t e = 0; e < edges_.nodes(); ++e) {
    for (const uint32_t next : edges_.successors(e)) {
      all.push_back({e, next});
    }
  }
  edges_ = Adjacency(edges_.nodes(), all);
  inserted_.clear();
  last_inserted_.clear();
  before_inserted_.clear();
}

// From a forwarded load to a later one of the same thread, through nothing but forwarded loads.
bool Reachability::line_reaches(uint32_t from, uint32_t to) const {
  const Forwarded& first = forwarded_[index_[from]];
  const Forwarded& last = forwarded_[index_[to]];
  const bool same = first.ranges == last.ranges;
  if (first.thread != last.thread || from > to || !(same || ranges_mix_)) {
    return false;
  }
  if (same && first.one_range) {
    return true;  // each is followed by the next load of the same location, or by what drains
  }
  std::set<uint32_t> open{from};
  while (!open.empty()) {
    const uint32_t e = *open.begin();
    open.erase(open.begin());
    spend(1 + edges_.successors(e).size());
    for (const uint32_t next : edges_.successors(e)) {
      if (next == to) {
        return true;
      }
      if (chain_of_[next] == kNoChain && next < to) {
        open.insert(next);
      }
    }
  }
  return false;
}

PartialOrder Reachability::among(const std::vector<uint32_t>& events) const {
  const auto n = static_cast<uint32_t>(events.size());
  PartialOrder order(n);
  // By chain, then by the place in it.
  std::vector<uint32_t> on_chains;
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < n; ++i) {
    (chain_of_[events[i]] == kNoChain ? others : on_chains).push_back(i);
  }
  const auto place = [&](uint32_t i) { return std::pair(chain_of_[events[i]], index_[events[i]]); };
  std::sort(on_chains.begin(), on_chains.end(),
            [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
  for (auto first = on_chains.begin(); first != on_chains.end();) {
    const uint32_t chain = chain_of_[events[*first]];
    const auto last = std::find_if(first, on_chains.end(),
                                   [&](uint32_t i) { return chain_of_[events[i]] != chain; });
    // What the latest event that reaches j does, all before it on the chain do.
    for (uint32_t j = 0; j < n; ++j) {
      spend(4);
      const uint32_t reached = clocks_[events[j] * static_cast<size_t>(chains_) + chain];
      const auto after = std::partition_point(
          first, last, [&](uint32_t i) { return index_[events[i]] <= reached; });
      if (after != first) {
        order.set(*(after - 1), j);
      }
    }
    for (auto at = last; --at != first;) {
      spend(1 + n / 64);
      order.merge(*(at - 1), *at);
    }
    first = last;
  }
  order_forwarded(events, std::move(others), &order);
  return order;
}

// The rows of the forwarded loads, by their places in `events`.
void Reachability::order_forwarded(const std::vector<uint32_t>& events, std::vector<uint32_t> loads,
                                   PartialOrder* order) const {
  std::erase_if(loads, [&](uint32_t i) { return index_[events[i]] >= forwarded_.size(); });
  const auto load = [&](uint32_t i) -> const Forwarded& { return forwarded_[index_[events[i]]]; };
  // On each chain, from its end: a load reaches what an event as late as its first one reaches.
  std::vector<uint32_t> by_clock(loads.empty() ? 0 : events.size());
  std::iota(by_clock.begin(), by_clock.end(), 0U);
  std::vector<uint64_t> reached((events.size() + 63) / 64);
  for (uint32_t chain = 0; chain < chains_ && !loads.empty(); ++chain) {
    const auto clock = [&](uint32_t j) {
      return clocks_[events[j] * static_cast<size_t>(chains_) + chain];
    };
    const auto first = [&](uint32_t i) { return first_[load(i).row + chain]; };
    std::sort(by_clock.begin(), by_clock.end(),
              [&](uint32_t a, uint32_t b) { return clock(a) > clock(b); });
    std::sort(loads.begin(), loads.end(),
              [&](uint32_t a, uint32_t b) { return first(a) > first(b); });
    std::fill(reached.begin(), reached.end(), 0);
    auto next = by_clock.begin();
    spend(16 * events.size());
    for (const uint32_t i : loads) {
      spend(1 + events.size() / 64);
      for (; next != by_clock.end() && clock(*next) >= first(i); ++next) {
        reached[*next / 64] |= uint64_t{1} << (*next % 64);
      }
      if (next != by_clock.begin()) {
        order->add_row(i, reached);
      }
    }
  }
  // Through nothing but forwarded loads: only to later ones of the thread.
  const auto line = [&](uint32_t i) {
    return std::pair(load(i).thread, ranges_mix_ ? 0 : load(i).ranges);
  };
  std::sort(loads.begin(), loads.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(line(a), events[a]) < std::pair(line(b), events[b]);
  });
  for (auto from = loads.begin(); from != loads.end(); ++from) {
    for (auto to = from + 1; to != loads.end() && line(*to) == line(*from); ++to) {
      spend(1);
      if (line_reaches(events[*from], events[*to])) {
        order->set(*from, *to);
      }
    }
  }
}

bool Reachability::reaches(uint32_t from, uint32_t to) const {
  if (from == to) {
    return false;
  }
  const uint32_t* const clock = clocks_.data() + to * static_cast<size_t>(chains_);
  if (chain_of_[from] != kNoChain) {
    return clock[chain_of_[from]] >= index_[from];
  }
  if (index_[from] >= forwarded_.size()) {
    return false;  // no node
  }
  const uint32_t* const first = first_.data() + forwarded_[index_[from]].row;
  for (uint32_t chain = 0; chain < chains_; ++chain) {
    if (first[chain] <= clock[chain]) {
      return true;
    }
  }
  return chain_of_[to] == kNoChain && index_[to] < forwarded_.size() && line_reaches(from, to);
}

}  // namespace tsomon
