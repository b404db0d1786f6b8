#include "offline/check/full_execution.h"

#include <algorithm>

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
    exclusion_.emplace(in.relation);
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
    const uint32_t by = in_.relation.settled_by(e);
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
