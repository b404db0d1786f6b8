// Binary search that begins where the last answer was.
//
// Purpose     Questions about a long list that follow each other have answers that lie close
//             together. What is looked at on the way to them is then in the cache.
// Complexity  O(log d) calls of the predicate, d places from the last answer. Thread-safety: pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tsomon {

// The first place below `size` whose predicate is false, or `size`; it is true of all places before.
// `near`: where to begin; becomes the answer.
template <typename Predicate>
uint32_t first_without(uint32_t size, uint32_t* near, const Predicate& has) {
  uint32_t low = 0;  // all before have it
  uint32_t high = size;
  uint32_t at = std::min(*near, size);
  if (at < size && has(at)) {
    low = at + 1;
    for (uint32_t step = 1; low < high; step *= 2) {
      at = step < high - low ? low + step - 1 : high - 1;
      if (!has(at)) {
        high = at;
        break;
      }
      low = at + 1;
    }
  } else {
    high = at;
    for (uint32_t step = 1; low < high; step *= 2) {
      at = step < high - low ? high - step : low;
      if (has(at)) {
        low = at + 1;
        break;
      }
      high = at;
    }
  }
  while (low < high) {
    at = low + (high - low) / 2;
    if (has(at)) {
      low = at + 1;
    } else {
      high = at;
    }
  }
  *near = low;
  return low;
}

}  // namespace tsomon
