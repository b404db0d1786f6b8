// The smallest of the blocks that are enough, by leaving out and shortening.
//
// Purpose     What the walks of root_causes.h ask for is of one order of the accesses. Where every execution has to be
//             ruled out, and they differ in what they interrupt, blocks that are too large are made smaller as
//             long as the exact checker is content with them.
// Monotone    More code that is atomic never helps less. So no block of the result can be left out, and
//             none can lose a line at an end.
// Misses      Other sets that are as small; two blocks in the place of one with lines between them.
// Complexity  A question for each block and line that goes, and for each end that stays; at most
//             kMostBlockQuestions.
// Thread-safety: pure function.
#pragma once

#include <cstdint>
#include <functional>

#include "offline/explain/code.h"
#include "offline/explain/segments.h"

namespace tsomon::explain {

inline constexpr uint32_t kMostBlockQuestions = 200;

struct SmallestBlocks {
  SegmentSet blocks;     // empty: `all` are not enough
  bool complete = true;  // false: they may not be the smallest
};

SmallestBlocks smallest_blocks(SegmentSet all, const CodeMap& code,
                               const std::function<bool(const SegmentSet&)>& is_enough);

}  // namespace tsomon::explain
