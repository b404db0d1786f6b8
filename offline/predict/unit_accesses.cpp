#include "offline/predict/unit_accesses.h"

#include <algorithm>
#include <iterator>

#include "offline/predict/access_groups.h"
#include "offline/predict/atomicity.h"
#include "tso/support/work.h"

namespace tsomon::predict {

UnitAccesses::UnitAccesses(const Model& model, const KnownValues* values)
    : model_(model), units_(model.trace()), attempts_(model, values) {
  find_units();
}

void UnitAccesses::find_units() {
  spans_.resize(units_.size());
  has_pairs_.resize(model_.use_count());
  for (uint32_t thread = 0; thread < model_.threads(); thread += model_.buffers() ? 2 : 1) {
    FlatMap<uint32_t, uint32_t> known;  // cells of the present unit, in touched_
    UnitId current = UnitTable::kNone;
    for (const NodeId id : nodes_of(thread)) {
      const UnitId unit = unit_of(id);
      spend(2);
      if (!is_unit(unit) || !accesses(id)) {
        continue;
      }
      if (unit != current) {
        current = unit;
        known.clear();
        spans_[unit].touched = static_cast<uint32_t>(touched_.size());
      }
      spans_[unit].last = id;
      touch(id, &spans_[unit], &known);
    }
  }
}

// All that it issues and commits.
std::vector<NodeId> UnitAccesses::nodes_of(uint32_t thread) const {
  const std::vector<NodeId>& issued = model_.of_thread(thread);
  if (!model_.buffers()) {
    return issued;
  }
  const std::vector<NodeId>& committed = model_.of_thread(thread + 1);
  std::vector<NodeId> all;
  std::merge(issued.begin(), issued.end(), committed.begin(), committed.end(),
             std::back_inserter(all));
  spend(all.size());
  return all;
}

// Not one that nobody else comes to the cell with what is held since before the first access of the unit.
bool UnitAccesses::has_pairs(NodeId id, uint32_t cell, const Span& span) const {
  if (model_.buffers()) {
    return true;  // commits come later
  }
  if (span.count == 0) {
    return false;
  }
  const NodeId first = touched_[span.touched].first;
  const LockSet& others = others_hold(cell);
  const auto held = model_.held(id);
  return std::none_of(held.begin(), held.end(), [&](uint32_t number) {
    const Section& section = model_.sections()[number];
    return section.acquire < first && keeps_out(section, others);
  });
}

void UnitAccesses::touch(NodeId id, Span* span, FlatMap<uint32_t, uint32_t>* known) {
  uint32_t number = model_.node(id).first_use;
  for (const Use& use : model_.uses(id)) {
    spend(4);
    has_pairs_[number++] = has_pairs(id, use.cell, *span);
    const auto [at, is_new] = known->try_emplace(use.cell, static_cast<uint32_t>(touched_.size()));
    if (is_new) {
      touched_.push_back({use.cell, id, kNone});
      ++span->count;
    }
    Touched& touched = touched_[*at];
    if (touched.write == kNone && model_.node(id).writes) {
      touched.write = id;
    }
  }
}

// Pairs of accesses of units, the second one to the cell.
std::vector<UnitPairs> UnitAccesses::pairs_of(uint32_t cell) {
  std::vector<UnitPairs> pairs;
  if (model_.common_set(cell) == kNone) {
    return pairs;
  }
  others_ = &others_hold(cell);
  for (const ThreadList& list : model_.accesses_of(cell)) {
    known_.clear();
    for (const uint32_t use : list.items) {
      spend(1);
      if (!has_pairs_[use]) {
        continue;
      }
      const NodeId last = model_.use(use).node;
      const UnitId unit = unit_of(last);
      spend(1);
      if (!is_unit(unit) || !accesses(last)) {
        continue;
      }
      const Span& span = spans_[unit];
      bounded_ = bounded_ || span.count > AtomicityResult::kMaxCells;
      for (uint32_t i = 0; i < std::min(span.count, AtomicityResult::kMaxCells); ++i) {
        const Touched& touched = touched_[span.touched + i];
        if (touched.first >= last) {
          break;
        }
        add(touched.first, last, touched.cell, &pairs);
        if (touched.write != touched.first && touched.write < last) {
          add(touched.write, last, touched.cell, &pairs);
        }
      }
      if (model_.commits(list.thread)) {
        add_late(last, &pairs);
      }
    }
  }
  return pairs;
}

// A store that commits after later loads of its unit, to other places. What is passed is not
// drained in between.
void UnitAccesses::add_late(NodeId commit, std::vector<UnitPairs>* pairs) {
  const UnitId unit = unit_of(commit);
  const auto& mine = model_.of_thread(model_.owner(model_.node(commit).thread));
  std::vector<uint32_t> cells;
  const auto after =
      std::partition_point(mine.begin(), mine.end(), [&](NodeId id) { return id < commit; });
  for (auto at = after; at != mine.end() && unit_of(*at) == unit; ++at) {
    spend(1);
    if (model_.always_before(commit, *at)) {
      break;
    }
    for (const Use& use : model_.uses(*at)) {
      const bool known = std::find(cells.begin(), cells.end(), use.cell) != cells.end();
      if (model_.node(*at).reads == 0 || known || touches(commit, use.cell)) {
        continue;
      }
      if (cells.size() >= kMaxPassed) {
        bounded_ = true;
        return;
      }
      cells.push_back(use.cell);
      add(*at, commit, use.cell, pairs);
    }
  }
}

bool UnitAccesses::touches(NodeId id, uint32_t cell) const {
  const auto uses = model_.uses(id);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.cell == cell; });
}

bool UnitAccesses::keeps_out(const Section& section, const LockSet& others) {
  return std::any_of(others.begin(), others.end(), [&](const auto& held) {
    return held.first == section.lock && !(held.second && section.shared);
  });
}

void UnitAccesses::add(NodeId first, NodeId last, uint32_t far, std::vector<UnitPairs>* pairs) {
  const Node& begin = model_.node(first);
  const Node& end = model_.node(last);
  const auto before = model_.held(first);
  spend(2 + before.size());
  both_.clear();
  for (const uint32_t number : model_.held(last)) {
    if (std::find(before.begin(), before.end(), number) != before.end()) {
      if (keeps_out(model_.sections()[number], *others_)) {
        return;
      }
      both_.push_back(number);
    }
  }
  LockSet locks = lock_set(model_, both_);
  spend(8 + 4 * before.size());
  const auto [at, is_new] =
      known_.try_emplace(Key{far, model_.event(first).location, model_.event(last).location,
                             begin.writes, end.writes, first > last, locks},
                         pairs->size());
  if (is_new) {
    pairs->push_back({model_.owner(begin.thread),
                      far,
                      begin.writes != 0,
                      end.writes != 0,
                      std::move(locks),
                      {}});
  }
  (*pairs)[at->second].access.emplace_back(first, last);
}

}  // namespace tsomon::predict
