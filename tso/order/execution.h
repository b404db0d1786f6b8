// Executions with visible commits, made from an order of events.
//
// Source      Theory sections 1, 5.1 and 8.
// Purpose     A violation is shown as an execution: issues and commits in one sequence that the
//             abstract machine accepts. realise() finds one in which every pair of conflicting
//             events is ordered as asked and every directed edge of the trace is kept.
// Complexity  O(w + p) for a slice of w events with p pairs on the same bytes, O(w^2) at most.
// Thread-safety: pure functions of their arguments; a SliceSteps is immutable once built.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "tso/model/finding.h"
#include "tso/model/relation.h"
#include "tso/order/event_graph.h"

namespace tsomon {

// kBefore: the first event comes before the second; kAfter; kNone: either order will do. Asked for
// pairs with an undirected edge.
using OrientationOracle = std::function<Order(uint32_t, uint32_t)>;

// Whether e comes before f, by the trace or, where it leaves that open, by the orientation.
bool comes_before(const Relation& relation, const OrientationOracle& before, uint32_t e,
                  uint32_t f);

// Either order, or both.
struct EitherOrder {
  Edge a;
  Edge b;
};

// At most two elements, inside the object: every open edge has some of these lists.
template <typename T>
class UpToTwo {
 public:
  UpToTwo() = default;
  UpToTwo(std::initializer_list<T> items) {
    for (const T& item : items) {
      items_[size_++] = item;
    }
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  const T& front() const { return items_[0]; }
  template <typename Predicate>
  void erase_if(const Predicate& predicate) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      if (!predicate(items_[i])) {
        items_[kept++] = items_[i];
      }
    }
    size_ = kept;
  }

 private:
  T items_[2] = {};
  uint32_t size_ = 0;
};

// The executions of a slice, step by step: every order of the nodes that keeps `edges` and one
// edge of each pair in `either`. Node 2i issues event i of the slice, 2i+1 commits it where that
// is another step.
struct StepOrder {
  using Way = UpToTwo<Edge>;          // all of these edges
  using Alternatives = UpToTwo<Way>;  // one of these

  uint32_t nodes = 0;
  std::vector<Edge> edges;
  std::vector<EitherOrder> either;
  // What makes the first event of an undirected pair come before the second, and after it. In an
  // order of all nodes exactly one of them is so.
  std::vector<Alternatives> before;
  std::vector<Alternatives> after;
};

// The executions of one slice, for many questions about it.
class SliceSteps {
 public:
  // `slice`: events in trace order, closed under Relation::source. Both must outlive this.
  SliceSteps(const Relation& relation, const std::vector<uint32_t>& slice);

  // Under a partial orientation (kNone: open); `open` are pairs of the slice's events.
  StepOrder order(const OrientationOracle& before, const std::vector<Edge>& open) const;

  // realise() would find one.
  bool realisable(const OrientationOracle& before) const;

  // Trace order where the orientation leaves a choice, commits as early as possible. Nothing when
  // no execution orders the events so.
  std::optional<std::vector<Step>> realise(const OrientationOracle& before) const;

 private:
  struct Pair {
    uint32_t i;
    uint32_t j;
  };
  uint32_t index(uint32_t e) const;
  bool commits_later(uint32_t i) const;
  uint32_t effect(uint32_t i) const;
  void order_threads();
  void order_conflicts();
  void order_pair(uint32_t i, uint32_t j);
  void orient(const OrientationOracle& before, bool partial, StepOrder* result) const;
  void orient_conflict(uint32_t i, uint32_t j, const OrientationOracle& before, bool partial,
                       StepOrder* result) const;
  StepOrder::Alternatives alternatives(uint32_t i, uint32_t j) const;

  const Relation& relation_;
  const std::vector<uint32_t>& window_;
  std::vector<Edge> edges_;       // that every execution has
  std::vector<Pair> undirected_;  // i < j, both positions in the slice
};

// SliceSteps::realise() for one question.
std::optional<std::vector<Step>> realise(const Relation& relation,
                                         const std::vector<uint32_t>& slice,
                                         const OrientationOracle& before);

}  // namespace tsomon
