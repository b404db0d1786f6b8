// Pairs of events by number, and what an orientation of them says of two events.
//
// Complexity  O(1) expected. Thread-safety: const access is safe.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/order/event_graph.h"
#include "tso/support/flat_map.h"

namespace tsomon {

class OpenPairs {
 public:
  void reserve(size_t pairs) { numbers_.reserve(pairs); }
  // Its number is how many were added before.
  void add(const Edge& pair) { numbers_.try_emplace(key(pair.from, pair.to), count_++); }
  bool empty() const { return numbers_.empty(); }

  struct Place {
    uint32_t number;
    bool forward;  // asked about as it was added
  };
  std::optional<Place> find(uint32_t e, uint32_t f) const {
    if (const uint32_t* const number = numbers_.find(key(e, f))) {
      return Place{*number, true};
    }
    if (const uint32_t* const number = numbers_.find(key(f, e))) {
      return Place{*number, false};
    }
    return std::nullopt;
  }

  // `orientation` by number, true: the pair's `from` comes first. kNone: no such pair.
  Order order(const std::vector<bool>& orientation, uint32_t e, uint32_t f) const {
    const std::optional<Place> place = find(e, f);
    if (!place) {
      return Order::kNone;
    }
    return orientation[place->number] == place->forward ? Order::kBefore : Order::kAfter;
  }

 private:
  static uint64_t key(uint32_t e, uint32_t f) { return (static_cast<uint64_t>(e) << 32) | f; }

  FlatMap<uint64_t, uint32_t> numbers_;
  uint32_t count_ = 0;
};

}  // namespace tsomon
