#include "offline/explain/smallest_blocks.h"

#include <cstddef>
#include <utility>

namespace tsomon::explain {
namespace {

// Without its first or last line; false: it has one alone.
bool shorten(const CodeMap& code, bool front, Segment* block) {
  uint32_t& end = front ? block->first : block->last;
  while (block->first < block->last) {
    front ? ++end : --end;
    if (!code.location(block->operation, end).empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

SmallestBlocks smallest_blocks(SegmentSet all, const CodeMap& code,
                               const std::function<bool(const SegmentSet&)>& is_enough) {
  SmallestBlocks result;
  uint32_t questions = 0;
  const auto accept = [&](SegmentSet less) {
    result.complete = result.complete && questions < kMostBlockQuestions;
    if (less.empty() || !result.complete || (++questions, !is_enough(less))) {
      return false;
    }
    result.blocks = std::move(less);
    return true;
  };
  if (!accept(std::move(all))) {
    return result;
  }
  for (size_t i = result.blocks.size(); i-- > 0;) {
    SegmentSet less = result.blocks;
    less.erase(less.begin() + static_cast<ptrdiff_t>(i));
    accept(std::move(less));
  }
  for (size_t i = 0; i < result.blocks.size(); ++i) {
    for (const bool front : {true, false}) {
      SegmentSet less = result.blocks;
      while (shorten(code, front, &less[i]) && accept(less)) {
      }
    }
  }
  return result;
}

}  // namespace tsomon::explain
