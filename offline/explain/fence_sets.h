// The cheapest sets of places at which fences remove all given violations.
//
// Source      Implicit hitting sets (as in MaxSAT and MUS enumeration): a set that does not help is
//             grown until every further place would make it help; whatever helps has one of these.
// Purpose     Exact: each set that is found helps, no part of it does, and they come
//             in the order of their cost. What "helps" means is asked
//             (fenced_input.h), one violation at a time.
// Monotone    More fences never help less to robustness. To serializability they may: a fence between
//             a store and a load that are no unit orders the two, and a cycle may lead along them. So all
//             sets are tried where the places are few.
// Misses      Beyond kMostTried places sets that help while some set with more places does not.
// Complexity  Questions: places for each clause, and one for each set that is tried. Cheapest
//             hitting sets are exponential in the places at worst. Bounded by max_questions and by
//             the meter of the thread.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tso/order/orientations.h"

namespace tsomon::explain {

// Whether fences at these places (by number) remove one violation.
using FenceQuestion = std::function<Answer(const std::vector<bool>&)>;

struct FenceBounds {
  size_t max_sets = 8;
  uint64_t max_questions = 20'000;
};

struct FenceSets {
  std::vector<std::vector<uint32_t>> sets;  // places, ascending; the cheapest first
  uint64_t questions = 0;
  bool complete = true;  // false: there may be others, or cheaper ones
};

// `costs` by place, each positive.
FenceSets find_fence_sets(const std::vector<uint64_t>& costs,
                          const std::vector<FenceQuestion>& violations,
                          const FenceBounds& bounds = {});

// The same, by trying all sets.
inline constexpr size_t kMostTried = 10;  // places
FenceSets try_fence_sets(const std::vector<uint64_t>& costs,
                         const std::vector<FenceQuestion>& violations,
                         const FenceBounds& bounds = {});

}  // namespace tsomon::explain
