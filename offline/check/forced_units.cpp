#include "offline/check/forced_units.h"

#include <algorithm>
#include <utility>

#include "tso/support/work.h"

namespace tsomon {
namespace {

// What has not been drawn by then is not.
constexpr uint64_t kStepsAtFirst = 1'000'000;
constexpr uint64_t kStepsPerEvent = 500;
constexpr uint64_t kMostClocks = uint64_t{1} << 28U;

}  // namespace

bool ForcedUnits::applies(const OrderedUnits& in) {
  return !in.by_event && in.relation.options().order == TraceOrder::kIssue &&
         in.relation.options().semantics == Semantics::kExact &&
         uint64_t{in.units.size()} * in.relation.threads() <= kMostClocks;
}

ForcedUnits::ForcedUnits(const OrderedUnits& in, const AccessIndex& accesses,
                         const ThreadLists& lists, const std::vector<Edge>& certain)
    : in_(in),
      relation_(in.relation),
      accesses_(accesses),
      lists_(lists),
      threads_(in.relation.threads()),
      certain_(in.units.size(), certain),
      derived_(in.units.size()),
      clocks_(uint64_t{in.units.size()} * threads_, 0),
      waits_(in.units.size(), false),
      most_steps_(kStepsAtFirst + kStepsPerEvent * in.trace.events.size()) {
  number_units();
  find_sources();
  in_time(certain);
  for (uint32_t node = 0; node < in_.units.size(); ++node) {
    wait(node);
  }
  draw();
}

void ForcedUnits::draw() {
  while (!waiting_.empty() && !found_ && steps_ < most_steps_) {
    const uint32_t node = order_[waiting_.top()];
    waiting_.pop();
    waits_[node] = false;
    analyse(node);
  }
}

void ForcedUnits::count(uint64_t steps) {
  steps_ += steps;
  spend(steps);
}

void ForcedUnits::add(uint32_t from, uint32_t to) {
  derive(from, to);
  draw();
}

bool ForcedUnits::refutes(uint32_t from, uint32_t to) {
  count(clocks_.size() / 4);
  const std::vector<uint32_t> before = clocks_;
  assuming_ = true;
  add(from, to);
  assuming_ = false;
  const bool refuted = std::exchange(found_, false);
  clocks_ = before;
  for (; !log_.empty(); log_.pop_back()) {
    const Edge edge = log_.back();
    derived_[edge.from].pop_back();
    known_.erase((uint64_t{edge.from} << 32U) | edge.to);
  }
  for (; !waiting_.empty(); waiting_.pop()) {
    waits_[order_[waiting_.top()]] = false;
  }
  return refuted;
}

std::vector<Edge> ForcedUnits::derived() const {
  std::vector<Edge> edges;
  for (uint32_t node = 0; node < derived_.size(); ++node) {
    for (const uint32_t next : derived_[node]) {
      edges.push_back({node, next});
    }
  }
  return edges;
}

void ForcedUnits::number_units() {
  const auto& events = in_.trace.events;
  number_.assign(in_.units.size(), ThreadLists::kEnd);  // of those without events
  std::vector<Edge> accessed;
  spend(4 * events.size());
  for (uint32_t e = 0; e < events.size(); ++e) {
    if (lists_.unit(e) != ThreadLists::kEnd) {
      const uint32_t node = in_.units.of_event(e);
      number_[node] = lists_.unit(e);
      if (accesses_.list_of(e) != AccessIndex::kNone) {
        accessed.push_back({node, e});
      }
    }
  }
  accessed_ = Adjacency(in_.units.size(), accessed);
  floor_.assign(in_.units.size(), 0);
  for (uint32_t node = 0; node < floor_.size(); ++node) {
    if (number_[node] != ThreadLists::kEnd && lists_.entered_by_all(thread(node), number_[node])) {
      floor_[node] = number_[node] + 1;
    }
  }
}

void ForcedUnits::find_sources() {
  sources_.resize(accesses_.lists());
  issued_.resize(accesses_.lists());
  for (uint32_t list = 0; list < accesses_.lists(); ++list) {
    const auto events = accesses_.list(list);
    spend(4 * events.size());
    issued_[list] = earliest_from(events, [&](uint32_t e) { return relation_.hi(e); });
    uint32_t last = 0;
    for (const uint32_t e : events) {
      const uint32_t source = relation_.source(e);
      last = source == Relation::kNever ? last : std::max(last, lists_.unit(source) + 1);
      sources_[list].push_back(last);
    }
  }
}

void ForcedUnits::in_time(const std::vector<Edge>& certain) {
  std::vector<uint32_t> ends;
  for (uint32_t node = 0; node < in_.units.size(); ++node) {
    ends.push_back(in_.units[node].last_event);
  }
  spend(8 * (certain.size() + ends.size()));
  order_ = smallest_first(certain_, ends);
  place_.assign(ends.size(), 0);
  for (uint32_t i = 0; i < order_.size(); ++i) {
    place_[order_[i]] = i;
  }
}

void ForcedUnits::wait(uint32_t node) {
  if (!waits_[node]) {
    waits_[node] = true;
    waiting_.push(place_[node]);
  }
}

void ForcedUnits::analyse(uint32_t node) {
  count(4 + accessed_.successors(node).size());
  for (const uint32_t e : accessed_.successors(node)) {
    if (!relation_.only_reads(e)) {
      look_at_store(node, e);
    } else if (relation_.source(e) != Relation::kNever) {
      look_at_load(node, e);
    }
  }
  for (const uint32_t next : certain_.successors(node)) {
    pass_on(node, next);
  }
  for (size_t i = 0; i < derived_[node].size(); ++i) {
    pass_on(node, derived_[node][i]);
  }
}

void ForcedUnits::pass_on(uint32_t from, uint32_t to) {
  const uint32_t* const theirs = clock(from);
  uint32_t* const mine = clock(to);
  bool changed = false;
  count(threads_);
  for (ThreadId t = 0; t < threads_; ++t) {
    const uint32_t value = t == thread(from) ? std::max(theirs[t], floor_[from]) : theirs[t];
    if (value > mine[t]) {
      mine[t] = value;
      changed = true;
    }
  }
  if (changed) {
    found_ = found_ || mine[thread(to)] > number_[to];
    wait(to);
  }
}

// `from` comes before `to`.
void ForcedUnits::derive(uint32_t from, uint32_t to) {
  if (from == to ||
      (floor_[from] == number_[from] + 1 && clock(to)[thread(from)] >= floor_[from])) {
    return;
  }
  if (floor_[from] != number_[from] + 1 && !known_.insert((uint64_t{from} << 32U) | to).second) {
    return;
  }
  derived_[from].push_back(to);
  if (assuming_) {
    log_.push_back({from, to});
  }
  pass_on(from, to);
}

// Loads that were issued before the store, and whose own stores come before it.
void ForcedUnits::look_at_store(uint32_t node, uint32_t w) {
  for_each_conflicting_list(relation_, accesses_, w, [&](uint32_t list, ThreadId t) {
    if (list % 2 == 0) {
      return;
    }
    const std::vector<int64_t>& issued = issued_[list];
    const std::vector<uint32_t>& sources = sources_[list];
    count(4);
    const auto before = std::lower_bound(issued.begin(), issued.end(), relation_.lo(w));
    const auto known = std::upper_bound(sources.begin(), sources.end(), clock(node)[t]);
    const auto loads = std::min(before - issued.begin(), known - sources.begin());
    if (loads > 0) {
      const uint32_t load = accesses_.list(list)[static_cast<size_t>(loads - 1)];
      derive(in_.units.of_event(load), node);
    }
  });
}

// Stores that were issued after the load, and come before it.
void ForcedUnits::look_at_load(uint32_t node, uint32_t r) {
  const uint32_t source = in_.units.of_event(relation_.source(r));
  if (source == node) {
    return;
  }
  for_each_conflicting_list(relation_, accesses_, r, [&](uint32_t list, ThreadId t) {
    const auto stores = accesses_.list(list);
    const uint32_t known = clock(node)[t];
    count(4);
    const auto after = std::partition_point(stores.begin(), stores.end(),
                                            [&](uint32_t w) { return lists_.unit(w) < known; });
    if (after != stores.begin() && relation_.certainly_before(r, *(after - 1))) {
      derive(in_.units.of_event(*(after - 1)), source);
    }
  });
}

}  // namespace tsomon
