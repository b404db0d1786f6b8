#include "offline/check/full_execution.h"

#include <algorithm>
#include <utility>

#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {

FullExecutions::FullExecutions(const OrderedUnits& in, const AccessIndex& accesses,
                               const ValueReads* values)
    : in_(in), accesses_(accesses) {
  const size_t n = in.trace.events.size();
  std::vector<Edge> steps;
  steps.reserve(4 * n);
  add_steps_of_thread(&steps);
  add_directed(&steps);
  add_issues(accesses, &steps);
  before_.assign(2 * n, 0);
  for (const Edge& edge : steps) {
    ++before_[edge.to];
  }
  spend(2 * steps.size());
  steps_ = Adjacency(2 * n, steps);
  if (values != nullptr && in.trace.has_read_values()) {
    values_.emplace(in.relation, accesses);
    source_.assign(n, kNone);
    readers_.assign(n, 0);
    for (const ValueReads::Read& read : values->reads()) {
      if (read.store < ValueReads::kInitial) {
        source_[read.load] = read.store;
        ++readers_[read.store];
      }
    }
    find_loads();
  }
  if (locks_exclude(in.relation)) {
    exclusion_.emplace(in.relation, true, std::vector<ValueSection>());
  }
  find_remote(accesses);
}

void FullExecutions::find_loads() {
  of_pair_.resize(accesses_.lists() / 2);
  for (uint32_t pair = 0; pair < of_pair_.size(); ++pair) {
    of_pair_[pair].begin = static_cast<uint32_t>(loads_.size());
    for (const uint32_t list : {2 * pair, 2 * pair + 1}) {
      spend(accesses_.list(list).size());
      for (const uint32_t e : accesses_.list(list)) {
        if (values_->read(e)) {
          loads_.push_back(e);
        }
      }
    }
    const auto begin = loads_.begin() + of_pair_[pair].begin;
    const auto position = [&](uint32_t e) { return in_.relation.position(e); };
    if (!std::is_sorted(begin, loads_.end(),
                        [&](uint32_t a, uint32_t b) { return position(a) < position(b); })) {
      std::sort(begin, loads_.end(),
                [&](uint32_t a, uint32_t b) { return position(a) < position(b); });
    }
    of_pair_[pair].end = static_cast<uint32_t>(loads_.size());
  }
}

// Beyond the order of issues, that of commits, and fences: what is found committed by others.
void FullExecutions::add_steps_of_thread(std::vector<Edge>* steps) const {
  const auto n = static_cast<uint32_t>(in_.trace.events.size());
  spend(n);
  for (uint32_t e = 0; e < n; ++e) {
    if (!is(in_.trace.events[e], kinds::kNodes) || !in_.relation.is_store(e)) {
      continue;
    }
    const uint32_t by = in_.relation.visible_by(e);
    if (by != Relation::kNever && !in_.relation.drains(by)) {
      steps->push_back({effect(e), 2 * by});
    }
  }
}

// e has taken effect before the step: a forwarded load when it and its source have.
void FullExecutions::add_before(uint32_t e, uint32_t step, std::vector<Edge>* steps) const {
  steps->push_back({effect(e), step});
  if (const uint32_t source = in_.relation.source(e); source != Relation::kNever) {
    steps->push_back({effect(source), step});
  }
}

void FullExecutions::add_directed(std::vector<Edge>* steps) const {
  const auto& events = in_.trace.events;
  const Adjacency& edges = in_.order.edges();
  for (uint32_t e = 0; e < events.size(); ++e) {
    spend(1 + 2 * edges.successors(e).size());
    for (const uint32_t f : edges.successors(e)) {
      if (events[e].thread != events[f].thread) {
        const bool certain = in_.relation.between(e, f) == Order::kBefore;
        add_before(e, certain ? 2 * f : effect(f), steps);
      }
    }
  }
}

void FullExecutions::add_issues(const AccessIndex& accesses, std::vector<Edge>* steps) const {
  const Relation& relation = in_.relation;
  if (relation.options().order != TraceOrder::kIssue) {
    return;
  }
  std::vector<std::vector<int64_t>> issued(accesses.lists());
  for (uint32_t number = 0; number < issued.size(); ++number) {
    issued[number] =
        earliest_from(accesses.list(number), [&](uint32_t e) { return relation.hi(e); });
  }
  const auto n = static_cast<uint32_t>(in_.trace.events.size());
  for (uint32_t f = 0; f < n; ++f) {
    for_each_conflicting_list(relation, accesses, f, [&](uint32_t number, ThreadId) {
      const std::vector<int64_t>& times = issued[number];
      const auto after = std::lower_bound(times.begin(), times.end(), relation.lo(f));
      if (after != times.begin()) {
        const auto place = static_cast<size_t>(after - times.begin()) - 1;
        steps->push_back({2 * accesses.list(number)[place], 2 * f});
      }
    });
  }
}

void FullExecutions::add_open(const Edge& open, std::vector<Edge>* steps) const {
  const uint32_t source = in_.relation.source(open.to);
  uint32_t to = effect(open.to);
  if (source != Relation::kNever && in_.relation.certainly_before(open.to, open.from)) {
    to = effect(source);  // issued later than the load: it is before it by way of its source
  }
  add_before(open.from, to, steps);
}

std::vector<Step> FullExecutions::on_demand(std::span<const uint32_t> place,
                                            std::span<const Edge> open) const {
  const auto& events = in_.trace.events;
  // Back to front: the last step is node 0, and comes first.
  const auto last = static_cast<uint32_t>(2 * events.size() - 1);
  std::vector<Edge> steps;
  steps.reserve(steps_.size() + 3 * events.size());
  const auto before = [&](uint32_t a, uint32_t b) {
    if (a != kNone) {
      steps.push_back({last - b, last - a});
    }
  };
  for (uint32_t step = 0; step < 2 * events.size(); ++step) {
    for (const uint32_t next : steps_.successors(step)) {
      before(step, next);
    }
  }
  std::vector<Edge> asked;
  for (const Edge& edge : open) {
    add_open(edge, &asked);
  }
  for (const Edge& edge : asked) {
    before(edge.from, edge.to);
  }
  for (ThreadId thread = 0; thread < in_.relation.threads(); ++thread) {
    uint32_t issued = kNone;
    uint32_t committed = kNone;
    for (const uint32_t e : in_.relation.of_thread(thread)) {
      if (!is(events[e], kinds::kNodes)) {
        continue;
      }
      before(std::exchange(issued, 2 * e), 2 * e);
      if (in_.relation.is_store(e)) {
        before(2 * e, 2 * e + 1);
        before(std::exchange(committed, 2 * e + 1), 2 * e + 1);
      } else if (in_.relation.drains(e)) {
        before(committed, 2 * e);
      }
    }
  }
  std::vector<uint32_t> keys(2 * events.size());
  for (uint32_t step = 0; step < keys.size(); ++step) {
    // What is no access need not be of a unit.
    const uint32_t key = in_.by_event ? step / 2 : in_.units.of_event(step / 2);
    keys[last - step] = key < place.size() ? ~place[key] : 0;
  }
  spend(8 * (steps.size() + keys.size()));
  std::vector<Step> execution;
  const std::vector<uint32_t> order = smallest_first(Adjacency(keys.size(), steps), keys);
  if (order.size() != keys.size()) {
    return {};
  }
  execution.reserve(order.size());
  for (size_t at = order.size(); at-- > 0;) {
    const uint32_t step = last - order[at];
    const uint32_t e = step / 2;
    if (is(events[e], kinds::kNodes) && (step % 2 == 0 || in_.relation.is_store(e))) {
      execution.push_back({step % 2 == 1, e});
    }
  }
  return execution;
}

void FullExecutions::find_remote(const AccessIndex& accesses) {
  const auto n = static_cast<uint32_t>(in_.trace.events.size());
  remote_.assign(n, kNone);
  // By list, the first of its accesses behind the event that is looked at.
  std::vector<uint32_t> next(accesses.lists(), kNone);
  for (uint32_t e = n; e-- > 0;) {
    const uint32_t list = accesses.list_of(e);
    if (list == AccessIndex::kNone) {
      continue;
    }
    if (in_.relation.is_store(e)) {
      for_each_conflicting_list(in_.relation, accesses, e, [&](uint32_t theirs, ThreadId) {
        remote_[e] = std::min(remote_[e], next[theirs]);
      });
    }
    next[list] = e;
  }
}

}  // namespace tsomon
