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
void LocationIndex::for_each_neighbour(LocationId id, const Visit& visit) const {
  const LocationKey& key = keys_[id];
  if (large(key)) {
    for (LocationId other = 0; other < keys_.size(); ++other) {
      if (used_[other] && keys_[other].size != 0) {
        visit(other);
      }
    }
    return;
  }
  for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
    if (const auto at = on_line_.find(line); at != on_line_.end()) {
      std::for_each(at->second.begin(), at->second.end(), visit);
    }
  }
  std::for_each(large_.begin(), large_.end(), visit);
}

void LocationIndex::connect(LocationId id) {
  const LocationKey key = keys_[id];
  auto& mine = others_[id];
  for_each_neighbour(id, [&](LocationId other) {
    if (other != id && overlap(keys_[other], key) &&
        std::find(mine.begin(), mine.end(), other) == mine.end()) {
      mine.push_back(other);
      others_[other].push_back(id);
    }
  });
  if (large(key)) {
    large_.push_back(id);
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
    std::erase(others_[other], id);
  }
  others_[id].clear();
  if (key.size != 0 && large(key)) {
    std::erase(large_, id);
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
