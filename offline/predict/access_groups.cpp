#include "offline/predict/access_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tso/support/work.h"

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
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  std::vector<AccessGroup> groups;
  std::map<Key, size_t> known;
  for (const ThreadList& list : model.accesses_of(cell)) {
    known.clear();
    Key last;
    size_t group = SIZE_MAX;
    for (const uint32_t use : list.items) {
      const NodeId id = model.use(use).node;
      const Event& event = model.event(id);
      if (model.frees(id)) {
        continue;
      }
      const Key key{event.location, event.kind_bits, model.uses(id).front().cell,
                    model.lock_set(id)};
      spend(4);
      if (group == SIZE_MAX || key != last) {
        const auto [at, is_new] = known.try_emplace(key, groups.size());
        if (is_new) {
          groups.push_back({list.thread,
                            model.node(id).writes != 0,
                            event.atomic(),
                            event.location,
                            std::get<2>(key),
                            std::get<3>(key),
                            {}});
        }
        group = at->second;
        last = key;
      }
      groups[group].nodes.push_back(id);
    }
  }
  return groups;
}

bool all_exclude(const Model& model, uint32_t cell) {
  const uint32_t set = model.common_set(cell);
  return set != kNone && exclude(model.lock_sets()[set], model.lock_sets()[set]);
}

}  // namespace tsomon::predict
