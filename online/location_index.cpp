#include "online/location_index.h"

#include <algorithm>

namespace tsomon {

LocationId LocationIndex::find_slowly(const LocationKey& key, bool* is_new) {
  const bool named = key.size == 0 && key.address < kMaxNamed;
  if (!named) {
    if (const auto known = ids_.find(key); known != ids_.end()) {
      *is_new = false;
      remember(key, known->second);
      return known->second;
    }
  }
  *is_new = true;
  LocationId id = 0;
  if (free_.empty()) {
    id = static_cast<LocationId>(keys_.size());
    keys_.emplace_back();
    others_.emplace_back();
    used_.push_back(false);
  } else {
    id = free_.back();
    free_.pop_back();
  }
  keys_[id] = key;
  used_[id] = true;
  ++size_;
  if (named) {
    if (key.address >= named_.size()) {
      named_.resize(std::max<size_t>(key.address + 1, 2 * named_.size()), LocationTable::kNone);
    }
    named_[key.address] = id;
  } else {
    ids_.insert_or_assign(key, id);
  }
  if (key.size != 0) {
    connect(id);
  }
  return id;
}

// Every known range that may overlap, some of them more than once.
template <typename Visit>
void LocationIndex::for_each_neighbour(const LocationKey& key, const Visit& visit) const {
  const uint64_t lines = last_line(key) - first_line(key) + 1;
  if (lines <= on_line_.size()) {
    for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
      if (const auto at = on_line_.find(line); at != on_line_.end()) {
        std::for_each(at->second.begin(), at->second.end(), visit);
      }
    }
  } else {
    for (const auto& [line, ids] : on_line_) {
      std::for_each(ids.begin(), ids.end(), visit);
    }
  }
  for (const auto& [width, by_address] : large_) {
    // None of this width that begins earlier reaches to the range.
    const uint64_t reach = (uint64_t{1} << width) - 1;
    const uint64_t from = key.address > reach ? key.address - reach : 0;
    for (auto at = by_address.lower_bound({from, 0});
         at != by_address.end() && at->first <= key.address + (key.size - 1); ++at) {
      visit(at->second);
    }
  }
}

void LocationIndex::connect(LocationId id) {
  const LocationKey key = keys_[id];
  auto& mine = others_[id];
  for_each_neighbour(key, [&](LocationId other) {
    if (overlap(keys_[other], key)) {
      mine.push_back(other);
    }
  });
  std::sort(mine.begin(), mine.end());
  mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  for (const LocationId other : mine) {
    auto& theirs = others_[other];
    theirs.insert(std::lower_bound(theirs.begin(), theirs.end(), id), id);
  }
  if (large(key)) {
    large_[width_of(key)].emplace(key.address, id);
    return;
  }
  for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
    on_line_[line].push_back(id);
  }
}

void LocationIndex::erase(LocationId id) {
  const LocationKey key = keys_[id];
  if (key.size == 0 && key.address < kMaxNamed) {
    named_[key.address] = LocationTable::kNone;
  } else {
    ids_.erase(key);
    remember(key, LocationTable::kNone);
  }
  for (const LocationId other : others_[id]) {
    auto& theirs = others_[other];
    theirs.erase(std::lower_bound(theirs.begin(), theirs.end(), id));
  }
  others_[id].clear();
  if (key.size != 0 && large(key)) {
    const auto at = large_.find(width_of(key));
    at->second.erase({key.address, id});
    if (at->second.empty()) {
      large_.erase(at);
    }
  } else if (key.size != 0) {
    for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
      const auto at = on_line_.find(line);
      std::erase(at.value(), id);
      if (at->second.empty()) {
        on_line_.erase(at);
      }
    }
  }
  used_[id] = false;
  --size_;
  free_.push_back(id);
}

}  // namespace tsomon
