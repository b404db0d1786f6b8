#include "offline/check/crossing_proof.h"

#include <utility>

#include "tso/order/lock_exclusion.h"

namespace tsomon {
namespace {

constexpr int kMostOrders = 6;     // of units, to find one that an execution has
constexpr size_t kMostEdges = 12;  // of a cycle that is met by chance: short ones are shown

// Stores that commit as soon as they are issued, and later ones.
constexpr CommitTime kTimes[] = {CommitTime::kAtOnce, CommitTime::kUnitEnd, CommitTime::kDrain,
                                 CommitTime::kRemoteAccess};
constexpr CommitTime kCycleTimes[] = {CommitTime::kAtOnce, CommitTime::kDrain};

}  // namespace

CrossingProof::CrossingProof(const OrderedUnits& in, const AccessIndex& accesses,
                             const ThreadLists& lists, const ValueReads* values)
    : in_(in),
      accesses_(accesses),
      lists_(lists),
      values_(values),
      direct_((values == nullptr || !values->any()) && in.relation.acquisitions().empty()) {}

std::optional<std::vector<Step>> CrossingProof::make(const ExecutionChoice& choice,
                                                     std::vector<Edge> open) {
  if (exhausted() || in_.trace.in_front != 0) {
    return std::nullopt;
  }
  ++made_;
  if (!executions_) {
    executions_.emplace(in_, accesses_, values_);
  }
  return executions_->make(choice, open);
}

std::optional<Violation> CrossingProof::look_at(const ExecutionChoice& choice) {
  auto execution = make(choice, {});
  if (!execution) {
    return std::nullopt;
  }
  const auto cycle = cycle_of_execution(in_, *execution);
  last_ = std::move(execution);
  acyclic_ = acyclic_ || !cycle;
  return cycle && cycle->size() <= kMostEdges ? witness_in_execution(in_, *cycle, *last_)
                                              : std::nullopt;
}

std::optional<Violation> CrossingProof::show_any() {
  while (looked_at_ <= std::size(kTimes) && !exhausted()) {
    // The second one is likely to have no cycle.
    const size_t at = looked_at_++;
    if (auto found = at == 1 ? look_at({CommitTime::kAtOnce, certain().place})
                             : look_at({kTimes[at == 0 ? 0 : at - 1], {}})) {
      return found;
    }
  }
  return std::nullopt;
}

const CertainUnits& CrossingProof::certain() {
  if (!certain_) {
    certain_ = certain_units(in_, accesses_, lists_);
  }
  return *certain_;
}

std::optional<Violation> CrossingProof::show(const std::vector<Edge>& cycle) {
  if (direct_) {
    return witness_of_cycle(in_, cycle);
  }
  if (looked_at_ == 0) {
    if (auto found = look_at({kTimes[looked_at_++], {}})) {
      return found;
    }
  }
  std::vector<Edge> open;
  for (const Edge& edge : cycle) {
    if (in_.relation.conflict(edge.from, edge.to)) {
      open.push_back(edge);
    }
  }
  for (const CommitTime time : kCycleTimes) {
    if (auto execution = make({time, {}}, open)) {
      last_ = std::move(execution);
      if (auto found = witness_in_execution(in_, cycle, *last_)) {
        return found;
      }
    }
  }
  return show_any();
}

// Units one after the other, as far as what is certain allows. Where an execution has a cycle all the
// same, its edges against that order come to be taken for certain.
bool CrossingProof::find_acyclic() {
  std::vector<uint32_t> place = certain().place;
  std::vector<Edge> more;
  for (int round = 0; round < kMostOrders && !place.empty(); ++round) {
    std::optional<std::vector<Edge>> cycle;
    for (const CommitTime time : {CommitTime::kAtOnce, CommitTime::kDrain}) {
      if (auto execution = make({time, place}, {})) {
        auto found = cycle_of_execution(in_, *execution);
        last_ = std::move(execution);
        if (!found) {
          return true;
        }
        cycle = cycle ? std::move(cycle) : std::move(found);
      }
    }
    if (!cycle) {
      break;
    }
    const auto place_of = [&](uint32_t e) {
      return place[in_.by_event ? e : in_.units.of_event(e)];
    };
    for (const Edge& edge : *cycle) {
      if (place_of(edge.from) > place_of(edge.to)) {
        more.push_back(edge);
      }
    }
    place = certain_units(in_, accesses_, lists_, more).place;
  }
  if (auto execution = make({CommitTime::kAtOnce, {}}, {})) {
    last_ = std::move(execution);
    return !cycle_of_execution(in_, *last_);
  }
  return false;
}

void CrossingProof::settle(Violation* violation) {
  violation->verdict = Verdict::kPossible;
  violation->complete = acyclic_;
  if (acyclic_) {
    return;
  }
  if (certain().cycle) {
    last_ = last_ ? std::move(last_) : make({CommitTime::kAtOnce, {}}, {});
  } else {
    violation->complete = find_acyclic();
  }
  const auto& cycle = certain().cycle;
  if (!cycle || !last_) {
    return;
  }
  if (auto found = witness_in_execution(in_, *cycle, *last_)) {
    *violation = std::move(*found);
    violation->verdict = Verdict::kDefinite;
    violation->complete = true;
  }
}

}  // namespace tsomon
