#include "online/structures/location_index.h"

#include <algorithm>

namespace tsomon {

LocationId LocationIndex::find_slowly(const LocationKey& key, bool* is_new) {
  *is_new = false;
  if (on_lines(key)) {
    if (const LocationId known = known_on_line(key); known != LocationTable::kNone) {
      remember(key, known);
      return known;
    }
    *is_new = true;
    const LocationId id = new_id(key);
    connect(id);
    return id;
  }
  if (key.size == 0 && key.address < kMaxNamed) {
    *is_new = true;
    const LocationId id = new_id(key);
    if (key.address >= named_.size()) {
      named_.resize(std::max<size_t>(key.address + 1, 2 * named_.size()), LocationTable::kNone);
    }
    named_[key.address] = id;
    return id;
  }
  if (const auto known = ids_.find(key); known != ids_.end()) {
    remember(key, known->second);
    return known->second;
  }
  *is_new = true;
  const LocationId id = new_id(key);
  ids_.insert({key, id});
  if (key.size != 0) {
    connect(id);
  }
  return id;
}

// Ranges with the same bytes of their first line are the same, unless they go on on other lines.
LocationId LocationIndex::known_on_line(const LocationKey& key) const {
  const uint64_t line = first_line(key);
  const uint64_t bytes = bytes_on(key, line);
  const bool crossing = crosses(key);
  for (uint32_t at = parts_of(line); at != kNoComponent; at = parts_[at].next) {
    const LinePart& part = parts_[at];
    for (uint32_t i = 0; i < part.count; ++i) {
      if (part.bytes[i] == bytes && ((part.crossing >> i) & 1U) == (crossing ? 1U : 0U) &&
          (!crossing || keys_[part.ids[i]] == key)) {
        return part.ids[i];
      }
    }
  }
  return LocationTable::kNone;
}

LocationId LocationIndex::new_id(const LocationKey& key) {
  LocationId id = 0;
  if (free_.empty()) {
    id = static_cast<LocationId>(keys_.size());
    keys_.emplace_back();
    others_.emplace_back();
    used_.resize(id / kIdsPerWord + 1);
  } else {
    id = free_.back();
    free_.pop_back();
  }
  keys_[id] = key;
  used_[id / kIdsPerWord] |= uint64_t{1} << (id % kIdsPerWord);
  ++size_;
  return id;
}

// Every known range that overlaps, some of them more than once.
template <typename Visit>
void LocationIndex::for_each_overlapping(const LocationKey& key, const Visit& visit) const {
  const auto look = [&](uint64_t line, uint32_t first_component) {
    const uint64_t bytes = bytes_on(key, line);
    for (uint32_t at = first_component; at != kNoComponent; at = parts_[at].next) {
      const LinePart& part = parts_[at];
      for (uint32_t i = 0; i < part.count; ++i) {
        if ((part.bytes[i] & bytes) != 0) {
          visit(part.ids[i]);
        }
      }
    }
  };
  const uint64_t first = first_line(key);
  const uint64_t last = last_line(key);
  if (last - first < lines_.size()) {
    for (uint64_t line = first; line <= last; ++line) {
      look(line, parts_of(line));
    }
  } else {
    for (const auto& [line, part] : lines_) {
      if (first <= line && line <= last) {
        look(line, part);
      }
    }
  }
  for (const auto& [width, by_address] : large_) {
    // None of this width that begins earlier reaches to the range.
    const uint64_t reach = (uint64_t{1} << width) - 1;
    const uint64_t from = key.address > reach ? key.address - reach : 0;
    for (auto at = by_address.lower_bound({from, 0});
         at != by_address.end() && at->first <= key.address + (key.size - 1); ++at) {
      if (overlap(keys_[at->second], key)) {
        visit(at->second);
      }
    }
  }
}

void LocationIndex::connect(LocationId id) {
  const LocationKey key = keys_[id];
  auto& mine = others_[id];
  for_each_overlapping(key, [&mine](LocationId other) { mine.push_back(other); });
  if (mine.size() > 1) {
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  }
  for (const LocationId other : mine) {
    auto& theirs = others_[other];
    theirs.insert(std::lower_bound(theirs.begin(), theirs.end(), id), id);
  }
  if (large(key)) {
    large_[width_of(key)].emplace(key.address, id);
    return;
  }
  for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
    put_on_line(line, id);
  }
}

void LocationIndex::put_on_line(uint64_t line, LocationId id) {
  uint32_t& first = lines_.insert({line, kNoComponent}).first.value();
  if (first == kNoComponent || parts_[first].count == LinePart::kRoom) {
    uint32_t part = static_cast<uint32_t>(parts_.size());
    if (free_parts_.empty()) {
      parts_.emplace_back();
    } else {
      part = free_parts_.back();
      free_parts_.pop_back();
    }
    parts_[part].next = first;
    parts_[part].count = 0;
    parts_[part].crossing = 0;
    first = part;
  }
  LinePart& part = parts_[first];
  part.bytes[part.count] = bytes_on(keys_[id], line);
  part.ids[part.count] = id;
  part.crossing =
      static_cast<uint16_t>(part.crossing | ((crosses(keys_[id]) ? 1U : 0U) << part.count));
  ++part.count;
}

// The newest of the line takes its place.
void LocationIndex::take_off_line(uint64_t line, LocationId id) {
  const auto found = lines_.find(line);
  const uint32_t first = found->second;
  LinePart& newest = parts_[first];
  const uint32_t last = newest.count - 1U;
  for (uint32_t at = first; at != kNoComponent; at = parts_[at].next) {
    LinePart& part = parts_[at];
    const auto place = std::find(part.ids.begin(), part.ids.begin() + part.count, id);
    if (place == part.ids.begin() + part.count) {
      continue;
    }
    const auto i = static_cast<uint32_t>(place - part.ids.begin());
    part.bytes[i] = newest.bytes[last];
    part.ids[i] = newest.ids[last];
    const uint32_t moved = (newest.crossing >> last) & 1U;
    part.crossing = static_cast<uint16_t>((part.crossing & ~(1U << i)) | (moved << i));
    break;
  }
  newest.crossing = static_cast<uint16_t>(newest.crossing & ~(1U << last));
  newest.count = static_cast<uint16_t>(last);
  if (last == 0) {
    free_parts_.push_back(first);
    if (newest.next == kNoComponent) {
      lines_.erase(found);
    } else {
      found.value() = newest.next;
    }
  }
}

void LocationIndex::erase(LocationId id) {
  const LocationKey key = keys_[id];
  if (key.size == 0 && key.address < kMaxNamed) {
    named_[key.address] = LocationTable::kNone;
  } else {
    if (!on_lines(key)) {
      ids_.erase(key);
    }
    remember(key, LocationTable::kNone);
  }
  for (const LocationId other : others_[id]) {
    auto& theirs = others_[other];
    theirs.erase(std::lower_bound(theirs.begin(), theirs.end(), id));
  }
  others_[id].clear();
  if (on_lines(key)) {
    for (uint64_t line = first_line(key); line <= last_line(key); ++line) {
      take_off_line(line, id);
    }
  } else if (key.size != 0) {
    const auto at = large_.find(width_of(key));
    at->second.erase({key.address, id});
    if (at->second.empty()) {
      large_.erase(at);
    }
  }
  used_[id / kIdsPerWord] &= ~(uint64_t{1} << (id % kIdsPerWord));
  --size_;
  free_.push_back(id);
}

}  // namespace tsomon
