#include "online/set_policy/set_members.h"

#include <algorithm>

namespace tsomon {

bool SetMembers::refresh(const Symbols& symbols) {
  uint64_t members = 0;
  for (const AtomicSet& set : symbols.sets) {
    members += set.members.size();
  }
  if (members == known_members_ && symbols.sets.size() == known_sets_) {
    return false;
  }
  known_members_ = members;
  known_sets_ = symbols.sets.size();
  labels_.clear();
  ranges_.clear();
  names_.clear();
  bytes_.clear();
  by_name_.clear();
  for (uint32_t set = 0; set < symbols.sets.size(); ++set) {
    bytes_.emplace_back(symbols.sets[set].members);
    by_name_[symbols.sets[set].name].push_back(set);
    for (const LocationKey& key : symbols.sets[set].members) {
      (key.size == 0 ? names_ : ranges_)
          .push_back({key.address, key.size == 0 ? 0 : key.address + (key.size - 1), 0, set});
    }
  }
  const auto by_first = [](const Range& a, const Range& b) { return a.first < b.first; };
  std::sort(names_.begin(), names_.end(), by_first);
  std::sort(ranges_.begin(), ranges_.end(), by_first);
  uint64_t reach = 0;
  for (Range& range : ranges_) {
    reach = std::max(reach, range.last);
    range.reach = reach;
  }
  return true;
}

void SetMembers::sets_of(const LocationKey& key, std::vector<uint32_t>* sets) const {
  sets->clear();
  const auto before = [](uint64_t address, const Range& range) { return address < range.first; };
  if (key.size == 0) {
    auto at = std::upper_bound(names_.begin(), names_.end(), key.address, before);
    while (at != names_.begin() && std::prev(at)->first == key.address) {
      sets->push_back((--at)->set);
    }
  } else {
    const uint64_t last = key.address + (key.size - 1);
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), last, before);
    while (at != ranges_.begin() && std::prev(at)->reach >= key.address) {
      --at;
      if (at->last >= key.address) {
        sets->push_back(at->set);
      }
    }
  }
  std::sort(sets->begin(), sets->end());
  sets->erase(std::unique(sets->begin(), sets->end()), sets->end());
}

const SetMembers::Label& SetMembers::known(const Symbols& symbols, uint32_t label) {
  if (label >= labels_.size()) {
    labels_.resize(label + 1);
  }
  Label& known = labels_[label];
  if (!known.known) {
    known.known = true;
    const auto names = unit_sets(symbols.labels.text(label));
    known.all = names.empty();
    for (const auto& name : names) {
      if (const auto sets = by_name_.find(std::string(name)); sets != by_name_.end()) {
        known.sets.insert(known.sets.end(), sets->second.begin(), sets->second.end());
      }
    }
    std::sort(known.sets.begin(), known.sets.end());
    known.sets.erase(std::unique(known.sets.begin(), known.sets.end()), known.sets.end());
  }
  return known;
}

}  // namespace tsomon
