// Which lock could make a block of code atomic.
//
// Purpose     Where a lock already protects some of what a block accesses, it is the one to hold
//             around the block: the lock under which most of the other accesses to the same
//             locations are made.
// Also        Other code that accesses these locations without it would have to hold it, too.
// Complexity  O(events). Thread-safety: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon::explain {

struct LockAdvice {
  uint32_t acquisition = 0;  // an event that acquires it
  uint64_t with = 0;         // accesses to what the block accesses: of those the lock is held
  uint64_t without = 0;      // and not held, apart from those in the block
  std::vector<std::string> uncovered;  // where; at most kMaxPlaces
  static constexpr size_t kMaxPlaces = 8;
};

// `block`: the accesses of the block where it was found.
std::optional<LockAdvice> lock_for(const Trace& trace, const std::vector<uint32_t>& block);

}  // namespace tsomon::explain
