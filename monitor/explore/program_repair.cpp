#include "monitor/explore/program_repair.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tsomon::explore {
namespace {

// Texts of locations have no folders.
std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The order in the block, or -1: in the same method, not in the block. Nothing: elsewhere.
std::optional<int64_t> order_in(const RepairedBlock& block, const SourcePlace& place) {
  const int64_t first = block.whole ? 1 : 0;
  if (!block.function.empty()) {
    if (place.function != block.function || base_name(place.file) != base_name(block.file) ||
        place.line <= 0) {
      return std::nullopt;
    }
    const auto line = static_cast<uint32_t>(place.line);
    return line < block.first_line || line > block.last_line ? -1 : first + line - block.first_line;
  }
  if (const auto at = std::find(block.inside.begin(), block.inside.end(), place.text);
      at != block.inside.end()) {
    return first + (at - block.inside.begin());
  }
  if (std::find(block.outside.begin(), block.outside.end(), place.text) != block.outside.end()) {
    return -1;
  }
  return std::nullopt;
}

}  // namespace

bool RepairPlaces::learn_place(uint64_t pc) {
  const SourcePlace& place = symbols_.place(pc);
  bool learnt = false;
  if (std::find(repair_.fences.begin(), repair_.fences.end(), place.text) != repair_.fences.end()) {
    has_room_ = process_.add_fence(pc) && has_room_;
    fenced_ = learnt = true;
  }
  AtomicPlace atomic{pc, 0, 0};
  bool known = false;
  for (size_t i = 0; i < repair_.blocks.size(); ++i) {
    const std::optional<int64_t> order = order_in(repair_.blocks[i], place);
    known = known || order;
    if (order && *order >= 0) {
      atomic.block = static_cast<uint32_t>(i + 1);
      atomic.order = static_cast<uint32_t>(*order);
      in_block_ = true;
    }
  }
  if (known) {
    has_room_ = process_.add_atomic(atomic) && has_room_;
    learnt = true;
  }
  return learnt;
}

bool RepairPlaces::learn(const Run& run) {
  bool learnt = false;
  for (const Step& step : run.steps) {
    if (step.pc != 0 && known_.insert(step.pc).second) {
      learnt = learn_place(step.pc) || learnt;
    }
  }
  return learnt;
}

}  // namespace tsomon::explore
