// Pairs of accesses of a unit, which another thread may get between.
//
// Purpose     What atomicity.h looks at of a cell: the accesses of units to it, each with the first
//             ones that the unit has made to every cell before, in groups that are alike.
// Complexity  O(accesses of the cell x cells of a unit); at most AtomicityResult::kMaxCells of them.
// Errors      Throws WorkEnded.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "offline/predict/failed_attempts.h"
#include "offline/predict/model.h"
#include "tso/model/units.h"
#include "tso/support/flat_map.h"

namespace tsomon::predict {

// Accesses of a unit of one thread to `far` and later to the cell in question, alike in all that
// rules out a violation at once.
struct UnitPairs {
  uint32_t thread = 0;
  uint32_t far = 0;  // cell
  bool first_writes = false;
  bool last_writes = false;
  LockSet locks;                                  // held from the first to the last
  std::vector<std::pair<NodeId, NodeId>> access;  // first, last; both ascend
};

class UnitAccesses {
 public:
  UnitAccesses(const Model& model, const KnownValues* values);

  const UnitTable& units() const { return units_; }
  UnitId unit_of(NodeId id) const { return units_.of_event(model_.node(id).event); }
  bool is_unit(UnitId unit) const {
    return unit != UnitTable::kNone && units_[unit].label != Interner::kNone;
  }
  // It is an access of its unit, or of none.
  bool accesses(NodeId id) const { return !model_.frees(id) && !attempts_.has(id); }
  const FailedAttempts& attempts() const { return attempts_; }
  // The last node of its unit.
  NodeId unit_end(NodeId id) const {
    const UnitId unit = unit_of(id);
    return is_unit(unit) ? spans_[unit].last : id;
  }
  // Pairs of accesses of units, the second one to the cell, but for those with a lock held that keeps all others from the cell.
  std::vector<UnitPairs> pairs_of(uint32_t cell);
  // Some were left out.
  bool bounded() const { return bounded_; }

 private:
  // The first accesses of a unit to a cell.
  struct Touched {
    uint32_t cell = 0;
    NodeId first = kNone;
    NodeId write = kNone;
  };
  struct Span {
    uint32_t touched = 0;  // of touched_
    uint32_t count = 0;
    NodeId last = kNone;
  };
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, bool, bool, bool, LockSet>;
  static constexpr size_t kMaxPassed = 64;  // cells whose loads pass a store

  void find_units();
  std::vector<NodeId> nodes_of(uint32_t thread) const;
  void touch(NodeId id, Span* span, FlatMap<uint32_t, uint32_t>* known);
  void add_late(NodeId commit, std::vector<UnitPairs>* pairs);
  bool touches(NodeId id, uint32_t cell) const;
  bool has_pairs(NodeId id, uint32_t cell, const Span& span) const;
  // What is held at all accesses to the cell, of which there are some.
  const LockSet& others_hold(uint32_t cell) const {
    return model_.lock_sets()[model_.common_set(cell)];
  }
  static bool keeps_out(const Section& section, const LockSet& others);
  void add(NodeId first, NodeId last, uint32_t far, std::vector<UnitPairs>* pairs);

  const Model& model_;
  const UnitTable units_;
  const FailedAttempts attempts_;
  std::vector<Touched> touched_;
  std::vector<Span> spans_;          // by unit
  std::vector<bool> has_pairs_;      // by use: of which the access is the second one
  std::map<Key, size_t> known_;      // pairs of the present cell and thread
  const LockSet* others_ = nullptr;  // that is held at all accesses to the present cell
  std::vector<uint32_t> both_;
  bool bounded_ = false;
};

}  // namespace tsomon::predict
