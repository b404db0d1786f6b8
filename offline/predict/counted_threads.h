// The threads of which something is counted. Sets of nodes are counts of all threads of a trace; of a
// trace with a thousand threads most sets have nodes of two.
//
// Complexity  O(threads), of which those without anything take a sixteenth of a step.
// Thread-safety: a pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tsomon::predict {

inline constexpr size_t kCountBlock = 16;  // with a constant size the compiler makes vectors of it

template <typename Visit>
void each_counted(std::span<const uint32_t> counts, const Visit& visit) {
  const auto visit_each = [&](size_t begin, size_t end) {
    for (size_t thread = begin; thread < end; ++thread) {
      if (counts[thread] != 0) {
        visit(static_cast<uint32_t>(thread));
      }
    }
  };
  size_t begin = 0;
  for (; begin + kCountBlock <= counts.size(); begin += kCountBlock) {
    const uint32_t* const block = counts.data() + begin;
    uint32_t any = 0;
    for (size_t i = 0; i < kCountBlock; ++i) {
      any |= block[i];
    }
    if (any != 0) {
      visit_each(begin, begin + kCountBlock);
    }
  }
  visit_each(begin, counts.size());
}

// counts[i] is at least others[i], of as many.
inline void raise_counts(std::span<uint32_t> counts, std::span<const uint32_t> others) {
  size_t begin = 0;
  for (; begin + kCountBlock <= counts.size(); begin += kCountBlock) {
    for (size_t i = begin; i < begin + kCountBlock; ++i) {
      counts[i] = std::max(counts[i], others[i]);
    }
  }
  for (; begin < counts.size(); ++begin) {
    counts[begin] = std::max(counts[begin], others[begin]);
  }
}

}  // namespace tsomon::predict
