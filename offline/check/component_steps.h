// The order of all steps, issues and commits, that every execution of a component has.
//
// Source      Theory sections 1, 2 and 5.1: the steps of theory section 8 under the constraints
//             that realise() (tso/order/execution.h) gives to a slice, for components of any size.
// Purpose     Tells of any two steps whether one certainly comes before the other, and finds an
//             execution with given orders beside these.
// Complexity  The issues of a thread are a chain, and its commits: two clock entries a thread and
//             step order them. O((n + edges) * threads + n * overlapping ranges * threads * log n)
//             to build; reaches() O(1); schedule() O(n log n + edges).
// Requires    Units that end fenced: the sources of their loads, and what drains them, are inside.
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tso/check/component_check.h"
#include "tso/order/execution.h"

namespace tsomon {

class ComponentSteps {
 public:
  // Nothing when no execution has the order, when what values imply of a forwarded load leaves two
  // ways, or when it would need more than max_bytes.
  static std::optional<ComponentSteps> build(const ComponentQuestion& question, uint64_t max_bytes);

  // from == to, or from comes before to.
  bool reaches(uint32_t from, uint32_t to) const {
    return from == to || clocks_[static_cast<size_t>(to) * chains_ + chain_[from]] >= index_[from];
  }

  // The ways in which the first event, of the trace, can come before the second.
  StepOrder::Alternatives alternatives(uint32_t e, uint32_t f) const;

  // By step, its place in some execution with these edges, close to the order of the trace.
  std::optional<std::vector<uint32_t>> schedule(const std::vector<Edge>& extra) const;

  uint32_t steps() const { return static_cast<uint32_t>(chain_.size()); }

 private:
  explicit ComponentSteps(const ComponentQuestion& question) : question_(question) {}

  void collect_events();
  void order_threads();
  void order_issues();
  bool order_directed();  // false: contradiction, or more than one way
  bool compute_clocks();
  uint32_t issue(uint32_t e) const { return local_.at(e); }
  uint32_t effect(uint32_t e) const { return commit_[local_.at(e)]; }

  ComponentQuestion question_;
  std::vector<uint32_t> events_;                  // of the trace; issue i is step i
  std::unordered_map<uint32_t, uint32_t> local_;  // the reverse
  std::vector<uint32_t> commit_;                  // by event: its commit, or its issue again
  std::vector<std::vector<uint32_t>> threads_;    // issues
  std::vector<uint32_t> chain_;                   // by step
  std::vector<uint32_t> index_;                   // from 1
  std::vector<uint32_t> key_;                     // order of the trace
  std::vector<Edge> edges_;
  uint32_t chains_ = 0;
  std::vector<uint32_t> clocks_;  // chains_ entries a step: highest index that reaches it
};

}  // namespace tsomon
