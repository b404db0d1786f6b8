// Pairs of events by number, and what an orientation of them says of two events.
//
// Complexity  O(1) expected. Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/event_graph.h"
#include "tso/flat_map.h"

namespace tsomon {

class OpenPairs {
 public:
  void reserve(size_t pairs) { numbers_.reserve(pairs); }
  // Its number is how many were added before.
  void add(const Edge& pair) { numbers_.try_emplace(key(pair.from, pair.to), count_++); }
  bool empty() const { return numbers_.empty(); }

  // `orientation` by number, true: the pair's `from` comes first. kNone: no such pair.
  Order order(const std::vector<bool>& orientation, uint32_t e, uint32_t f) const {
    if (const uint32_t* const number = numbers_.find(key(e, f))) {
      return orientation[*number] ? Order::kBefore : Order::kAfter;
    }
    if (const uint32_t* const number = numbers_.find(key(f, e))) {
      return orientation[*number] ? Order::kAfter : Order::kBefore;
    }
    return Order::kNone;
  }

 private:
  static uint64_t key(uint32_t e, uint32_t f) { return (static_cast<uint64_t>(e) << 32) | f; }

  FlatMap<uint64_t, uint32_t> numbers_;
  uint32_t count_ = 0;
};

}  // namespace tsomon
