#include "offline/check/crossing_witness.h"

#include <algorithm>
#include <utility>

#include "tso/check/cycle.h"
#include "tso/check/witness.h"
#include "tso/order/execution.h"
#include "tso/support/none.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

constexpr size_t kMaxSlice = 1000;
constexpr size_t kMaxSteps = 100'000;  // of a thread, between two events of a cycle

class CycleWitness {
 public:
  CycleWitness(const OrderedUnits& in, const std::vector<Edge>& cycle) : in_(in), cycle_(cycle) {}

  bool fits() {
    for (const Edge& edge : cycle_) {
      if (!fork_or_join(edge)) {
        open_.push_back(edge);
      }
    }
    return fit_together();
  }

  // What the execution does with the events that the cycle needs.
  std::optional<Violation> run_in(const std::vector<Step>& execution) {
    if (!collect_slice()) {
      return std::nullopt;
    }
    spend(execution.size());
    std::vector<Step> steps;
    std::vector<bool> committed(slice_.size(), false);
    place_.assign(slice_.size(), kNone);
    std::vector<bool> wanted(in_.trace.events.size(), false);
    for (const uint32_t e : slice_) {
      wanted[e] = true;
    }
    for (const Step& step : execution) {
      if (!wanted[step.event]) {
        continue;
      }
      // As the witness checker has it: what was forwarded has its place right behind its source.
      const uint32_t source = in_.relation.source(step.event);
      const bool forwarded = source != Relation::kNever && !committed[index(source)];
      const auto place = static_cast<uint32_t>(2 * steps.size());
      if (step.commit || !in_.relation.is_store(step.event)) {
        place_[index(step.event)] = forwarded ? kNone : place;
      }
      committed[index(step.event)] = step.commit;
      steps.push_back(step);
    }
    for (const uint32_t e : slice_) {
      if (place_[index(e)] == kNone && in_.relation.source(e) != Relation::kNever) {
        place_[index(e)] = place_[index(in_.relation.source(e))] + 1;
      }
    }
    return show(steps);
  }

 private:
  bool fork_or_join(const Edge& edge) const {
    return in_.trace.events[edge.from].kind() == EventKind::kFork ||
           in_.trace.events[edge.to].kind() == EventKind::kJoin ||
           in_.relation.hands_over(edge.from, edge.to);
  }

  bool before(uint32_t e, uint32_t f) const {
    if (in_.order.reaches(e, f)) {
      return true;
    }
    if (in_.relation.source(e) == Relation::kNever) {
      return false;
    }
    const uint32_t next = in_.neighbours.behind[e];
    return next != kNone && (next == f || in_.order.reaches(next, f));
  }

  // The open edges, with what they lead to by way of others: no edge leads to itself.
  bool fit_together() {
    const auto count = static_cast<uint32_t>(open_.size());
    after_.assign(count, std::vector<bool>(count, false));
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t j = 0; j < count; ++j) {
        after_[i][j] = open_[i].to == open_[j].from || before(open_[i].to, open_[j].from);
      }
    }
    for (uint32_t k = 0; k < count; ++k) {
      for (uint32_t i = 0; i < count; ++i) {
        for (uint32_t j = 0; j < count; ++j) {
          after_[i][j] = after_[i][j] || (after_[i][k] && after_[k][j]);
        }
      }
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (after_[i][i]) {
        return false;
      }
    }
    return true;
  }

  bool collect_slice() {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      const uint32_t entered = cycle_[i].to;
      const uint32_t left = cycle_[(i + 1) % cycle_.size()].from;
      slice_.insert(slice_.end(), {cycle_[i].from, entered});
      if (!in_.by_event && in_.units.of_event(entered) != in_.units.of_event(left) &&
          !add_way(entered, left)) {
        return false;
      }
    }
    for (size_t i = 0; i < slice_.size(); ++i) {
      const uint32_t source = in_.relation.source(slice_[i]);
      if (source != Relation::kNever) {
        slice_.push_back(source);
      }
      if (slice_.size() > kMaxSlice) {
        return false;
      }
    }
    add_drains();
    std::sort(slice_.begin(), slice_.end());
    slice_.erase(std::unique(slice_.begin(), slice_.end()), slice_.end());
    return true;
  }

  // The events by which the unit of `from` leads to that of `to`, which comes later in the thread:
  // in the first unit, or in one between them, an event after which `to` comes.
  bool add_way(uint32_t from, uint32_t to) {
    const auto thread = in_.relation.of_thread(in_.trace.events[from].thread);
    const UnitId first = in_.units.of_event(from);
    const UnitId last = in_.units.of_event(to);
    UnitId unit = UnitTable::kNone;
    uint32_t entered = kNone;
    const size_t begin = in_.relation.position(in_.units[first].first_event);
    for (size_t at = begin; at < std::min(thread.size(), begin + kMaxSteps); ++at) {
      spend(4);
      const uint32_t e = thread[at];
      if (!is(in_.trace.events[e], kinds::kNodes)) {
        continue;
      }
      if (in_.units.of_event(e) != unit) {
        unit = in_.units.of_event(e);
        entered = unit == first ? from : kNone;
      }
      if (entered == kNone && in_.order.reaches(from, e)) {
        entered = e;
      }
      if (entered != kNone && (unit == last || in_.order.reaches(e, to))) {
        slice_.insert(slice_.end(), {entered, e});
        return true;
      }
    }
    return false;
  }

  // What orders a store and a later load of its thread is to be among the events.
  void add_drains() {
    std::vector<uint32_t> drains;
    for (const uint32_t e : slice_) {
      const uint32_t by = in_.relation.visible_by(e);
      if (by != Relation::kNever && by != e) {
        drains.push_back(by);
      }
    }
    slice_.insert(slice_.end(), drains.begin(), drains.end());
  }

  size_t index(uint32_t e) const {
    return static_cast<size_t>(std::lower_bound(slice_.begin(), slice_.end(), e) - slice_.begin());
  }

  Order order_of(uint32_t e, uint32_t f) const {
    return place_[index(e)] < place_[index(f)] ? Order::kBefore : Order::kAfter;
  }

  std::optional<Violation> show(const std::vector<Step>& steps) const {
    const OrientationOracle before = [this](uint32_t e, uint32_t f) { return order_of(e, f); };
    const WitnessChecker checker(
        in_.trace, {in_.options.property, in_.options.relation, WitnessValues::kIgnored, true});
    if (!checker.check(steps, WitnessValues::kIgnored)) {
      return std::nullopt;
    }
    std::vector<uint32_t> ends;
    for (const Edge& edge : cycle_) {
      ends.insert(ends.end(), {edge.from, edge.to});
    }
    Violation found;
    found.complete = false;
    found.witness = minimal_witness(checker, in_.relation, steps, WitnessValues::kIgnored, ends);
    for (const Step& step : found.witness) {
      if (!step.commit) {
        found.slice.push_back(step.event);
      }
    }
    std::sort(found.slice.begin(), found.slice.end());
    if (!checker.check(found.witness, WitnessValues::kIgnored)) {
      return std::nullopt;
    }
    name_cycle(before, &found);
    return found.cycle.empty() ? std::nullopt : std::optional(std::move(found));
  }

  // The cycle that the execution shows, by its edges.
  void name_cycle(const OrientationOracle& before, Violation* found) const {
    std::vector<uint32_t> class_of(in_.trace.events.size(), kNone);
    for (const uint32_t e : found->slice) {
      class_of[e] = in_.by_event ? e : in_.units.of_event(e);
    }
    ThreadOrder in_thread;
    if (in_.by_event) {
      in_thread = [this](uint32_t e, uint32_t f) {
        return in_.relation.position(e) < in_.relation.position(f);
      };
    }
    found->cycle = shortest_cycle_among(in_.relation, class_of, found->slice, before, in_thread);
    for (CycleEdge& edge : found->cycle) {
      edge.unit = in_.units.of_event(edge.from);
      if (edge.kind == EdgeKind::kReordering && in_.order.reaches(edge.from, edge.to)) {
        edge.kind = EdgeKind::kValues;
      }
    }
  }

  const OrderedUnits& in_;
  const std::vector<Edge>& cycle_;
  std::vector<Edge> open_;  // without forks and joins
  std::vector<std::vector<bool>> after_;
  std::vector<uint32_t> slice_;
  std::vector<uint32_t> place_;  // in the execution, by place in the slice
};

}  // namespace

bool may_fit_together(const OrderedUnits& in, const std::vector<Edge>& cycle) {
  return CycleWitness(in, cycle).fits();
}

std::optional<Violation> witness_in_execution(const OrderedUnits& in,
                                              const std::vector<Edge>& cycle,
                                              const std::vector<Step>& execution) {
  return CycleWitness(in, cycle).run_in(execution);
}

}  // namespace tsomon
