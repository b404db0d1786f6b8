#include "offline/predict/access_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tso/work.h"

namespace tsomon::predict {

LockSet lock_set(const Model& model, std::span<const uint32_t> sections) {
  LockSet locks;
  for (const uint32_t section : sections) {
    locks.emplace_back(model.sections()[section].lock, model.sections()[section].shared);
  }
  std::sort(locks.begin(), locks.end());
  return locks;
}

bool exclude(const LockSet& a, const LockSet& b) {
  for (const auto& [lock, shared] : a) {
    for (const auto& [other, other_shared] : b) {
      if (lock == other && !(shared && other_shared)) {
        return true;
      }
    }
  }
  return false;
}

std::vector<AccessGroup> groups_of(const Model& model, uint32_t cell) {
  std::vector<AccessGroup> groups;
  for (const ThreadList& list : model.accesses_of(cell)) {
    std::map<std::tuple<uint32_t, uint8_t, uint32_t, LockSet>, size_t> known;
    for (const uint32_t use : list.items) {
      const NodeId id = model.use(use).node;
      const Node& node = model.node(id);
      LockSet locks = lock_set(model, model.held(node.thread, node.position));
      spend(4 + 4 * locks.size());
      const Event& event = model.event(id);
      const uint32_t first_cell = model.uses(id).front().cell;
      const auto [at, is_new] = known.try_emplace(
          {event.location, static_cast<uint8_t>(event.kind_bits), first_cell, locks},
          groups.size());
      if (is_new) {
        groups.push_back({node.thread, node.writes, first_cell, std::move(locks), {}});
      }
      groups[at->second].nodes.push_back(id);
    }
  }
  return groups;
}

}  // namespace tsomon::predict
