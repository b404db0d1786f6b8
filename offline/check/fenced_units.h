// The order of the units of a component in which the units of every thread are ordered.
//
// Purpose     Reachability between units by one clock a thread, for components with any number of units.
// Complexity  O((units + edges) * threads) to build, 8 * threads bytes a unit; queries O(1).
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tso/model/units.h"
#include "tso/order/event_graph.h"
#include "tso/order/reachability.h"

namespace tsomon {

class FencedUnits {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  // Units from here on are positions in `members`.
  FencedUnits(const UnitTable& units, const std::vector<UnitId>& members);

  // Orders the units by these edges and the threads; false: they have a cycle.
  bool order(const std::vector<Edge>& edges);

  uint32_t size() const { return static_cast<uint32_t>(thread_.size()); }
  uint32_t threads() const { return static_cast<uint32_t>(lines_.size()); }
  uint32_t thread(uint32_t unit) const { return thread_[unit]; }
  uint32_t position(uint32_t unit) const { return position_[unit]; }  // in its thread
  const std::vector<uint32_t>& line(uint32_t thread) const { return lines_[thread]; }

  // The first position in the thread that comes after the unit, or is the unit; kNone: none does.
  uint32_t first_after(uint32_t unit, uint32_t thread) const {
    return first_after_[static_cast<size_t>(unit) * threads() + thread];
  }
  // The last position in the thread that comes before the unit, or is the unit; kNone: none does.
  uint32_t last_before(uint32_t unit, uint32_t thread) const {
    return last_before_[static_cast<size_t>(unit) * threads() + thread] - 1;
  }
  // from == to, or from comes before to.
  bool reaches(uint32_t from, uint32_t to) const {
    return first_after(from, thread_[to]) <= position_[to];
  }

  // By unit its place in some order of all; where there is a choice the least key comes first.
  std::vector<uint32_t> places(const std::vector<uint32_t>& key) const;

 private:
  std::vector<uint32_t> thread_;
  std::vector<uint32_t> position_;
  std::vector<std::vector<uint32_t>> lines_;  // units by thread
  std::vector<Edge> edges_;
  std::vector<uint32_t> first_after_;
  std::vector<uint32_t> last_before_;  // from 1
};

}  // namespace tsomon
