// The sequential specification of an object that holds one value.
//
// Purpose     What the search replays operations on: a step that is allowed can be undone.
// Texts       kAppend makes a value of two. Texts are nodes of one tree, a character an edge, so
//             that equal texts are the same node: a state is one number, exactly.
// Memory      Of kv-append: a node (24 bytes) for every distinct beginning of a text.
// Complexity  O(1) a step, O(length of its text) of kAppend. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "offline/linearizability/operation.h"
#include "tso/support/flat_map.h"

namespace tsomon::linearizability {

class TextTree {
 public:
  // The node of the text at `node` with `text` after it. 0 is the empty text.
  uint32_t walk(uint32_t node, std::string_view text) {
    for (const char c : text) {
      const uint64_t edge = (uint64_t{node} << 8) | static_cast<unsigned char>(c);
      const auto [child, is_new] = children_.try_emplace(edge, next_);
      next_ += is_new ? 1 : 0;
      node = *child;
    }
    return node;
  }
  size_t bytes() const { return children_.size() * 24; }

 private:
  FlatMap<uint64_t, uint32_t> children_;
  uint32_t next_ = 1;
};

class Cell {
 public:
  // `history` for the texts of kv-append; must outlive the cell. `part` likewise.
  Cell(const History& history, const Part& part);

  // Whether a pending operation would have an effect now.
  bool changes(const Op& op) const {
    const bool same = op.step == Step::kWrite ? op.a == state_ : op.a == op.b;
    return text_ || !same || (op.step != Step::kWrite && op.step != Step::kCas);
  }
  // Carries the operation out if the specification allows it now.
  bool apply(const Op& op);
  // Takes back the last operation that was carried out and not taken back.
  void undo(const Op& op);

  uint64_t hash() const { return static_cast<uint64_t>(state_) * 0x9E3779B97F4A7C15ULL; }
  void save(std::vector<int64_t>* state) const { state->push_back(state_); }
  bool equals(const int64_t* saved, size_t size) const { return size == 1 && *saved == state_; }
  size_t bytes() const { return texts_.bytes(); }

 private:
  HistoryValue node_of(HistoryValue value);
  void set(HistoryValue value) {
    before_.push_back(state_);
    state_ = value;
  }

  const History& history_;
  bool text_;
  HistoryValue state_;
  std::vector<HistoryValue> before_;
  TextTree texts_;
  FlatMap<HistoryValue, HistoryValue> nodes_;
};

}  // namespace tsomon::linearizability
