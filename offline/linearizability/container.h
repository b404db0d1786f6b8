// The sequential specifications of objects that hold many values: a line of values with two ends
// (queue, stack, deque), and a sorted collection (priority queue).
//
// Purpose     As cell.h: what the search replays operations on.
// Unknown     A pending pop takes whatever is there; of an empty object it has had no effect, which
//             the search has as another choice, so that it is not allowed here.
// Complexity  O(1) a step, O(log n) of a priority queue. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <set>
#include <vector>

#include "offline/linearizability/operation.h"

namespace tsomon::linearizability {

inline uint64_t mix(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31);
}

// A queue, a stack or a deque: which ends are used is up to the operations.
class Line {
 public:
  Line(const History& /*history*/, const Part& /*part*/) {}

  bool changes(const Op& /*op*/) const { return true; }
  bool apply(const Op& op);
  void undo(const Op& op);

  // Of the values from front to back: their number and those near the ends.
  uint64_t hash() const;
  void save(std::vector<int64_t>* state) const {
    state->insert(state->end(), values_.begin(), values_.end());
  }
  bool equals(const int64_t* saved, size_t size) const {
    return size == values_.size() && std::equal(values_.begin(), values_.end(), saved);
  }
  size_t bytes() const { return values_.size() * sizeof(HistoryValue); }

 private:
  void put(bool front, HistoryValue value) {
    front ? values_.push_front(value) : values_.push_back(value);
  }
  void drop(bool front) { front ? values_.pop_front() : values_.pop_back(); }

  std::deque<HistoryValue> values_;
  std::vector<HistoryValue> taken_;  // by pending pops
};

class PriorityQueue {
 public:
  PriorityQueue(const History& /*history*/, const Part& /*part*/) {}

  bool changes(const Op& /*op*/) const { return true; }
  bool apply(const Op& op);
  void undo(const Op& op);

  uint64_t hash() const { return hash_; }
  void save(std::vector<int64_t>* state) const {
    state->insert(state->end(), values_.begin(), values_.end());
  }
  bool equals(const int64_t* saved, size_t size) const {
    return size == values_.size() && std::equal(values_.begin(), values_.end(), saved);
  }
  size_t bytes() const { return values_.size() * 48; }

 private:
  std::multiset<HistoryValue> values_;
  std::vector<HistoryValue> taken_;
  uint64_t hash_ = 0;
};

}  // namespace tsomon::linearizability
