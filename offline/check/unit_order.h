// An order of the units of a component in which no unit comes between two others that a rule names.
//
// Source      Theory sections 3 and 5.1. An orientation without a cycle of units is an order of the
//             units; forwarding constraints and values forbid that `other` comes between `write` and `read`.
// Method      Units are put into order one by one. What may come next depends only on the set of
//             those that have been: `other` has to wait while `write` is in and `read` is not. A
//             unit that makes nobody wait is taken at once; among the others all are tried, and
//             sets that led nowhere are remembered.
// Complexity  O(units^2) without rules; with them one set per state, at most the product of the
//             lengths of the threads' sequences of units: polynomial for a fixed number of threads.
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "offline/check/growing_order.h"
#include "tso/order/orientations.h"

namespace tsomon {

struct UnitOrderBounds {
  uint64_t max_states = 1'000'000;
  uint64_t max_bytes = uint64_t{1} << 30;
};

// `rules` over elements of `directed`, all three different; `priority`: which are tried first. kYes
// fills `place` with the place of each unit. `states` counts the sets that were looked at.
Answer order_units(const GrowingOrder& directed, const std::vector<ReadsFrom>& rules,
                   const std::vector<uint32_t>& priority, const UnitOrderBounds& bounds,
                   std::vector<uint32_t>* place, uint64_t* states);

}  // namespace tsomon
