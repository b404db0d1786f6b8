// Dense ids for the locations in use, as they appear.
//
// Purpose     What tso/model/location_table.h does for a whole trace, one event at a time: every
//             byte range gets an id, and for each id the ids of the other ranges that overlap with
//             it are at hand. Locations that are no longer needed can be erased; their ids are
//             given out again.
// Complexity  A known location: one array access (named locations, whose ids are small numbers, and
//             byte ranges used lately) or one hash look-up and the known ranges on a cache line. A
//             new one, or an erased one: the known ranges on the cache lines that it touches, and
//             the ranges of more than kLargeLines lines that begin less than twice their length
//             before it.
// Memory      Two machine words for every name ever seen; for a byte range, about 150 bytes while
//             it is in use.
// Thread-safety: none.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "online/structures/huge_pages.h"
#include "tso/model/location_table.h"

namespace tsomon {

class LocationIndex {
 public:
  // Named locations with smaller addresses are cheap to keep: they are numbered names.
  static constexpr uint64_t kMaxNamed = 1ULL << 22;

  LocationId find_or_add(uint64_t address, uint32_t size) {
    bool is_new = false;
    return find_or_add(address, size, &is_new);
  }
  // `is_new`: the location was not in use.
  LocationId find_or_add(uint64_t address, uint32_t size, bool* is_new) {
    if (size == 0 && address < named_.size() && named_[address] != LocationTable::kNone) {
      *is_new = false;
      return named_[address];
    }
    const LocationKey key{address, size};
    const Recent& recent = recent_[KeyHash()(key) % kRecent];
    if (recent.id != LocationTable::kNone && recent.key == key) {
      *is_new = false;
      return recent.id;
    }
    return find_slowly(key, is_new);
  }
  // Of a location in use that is cheap to look up, else kNone.
  LocationId find_cheaply(const Event& event) const {
    if (event.size == 0 && event.address < named_.size()) {
      return named_[event.address];
    }
    const LocationKey key{event.address, event.size};
    const Recent& recent = recent_[KeyHash()(key) % kRecent];
    return recent.key == key ? recent.id : LocationTable::kNone;
  }
  void erase(LocationId id);

  const LocationKey& key(LocationId id) const { return keys_[id]; }
  // Without the location itself, in ascending order.
  const std::vector<LocationId>& others(LocationId id) const { return others_[id]; }
  uint32_t bound() const { return static_cast<uint32_t>(keys_.size()); }  // ids are below
  // Visits the ids in use in ascending order; the one that is visited may be erased meanwhile.
  // Complexity: O(size() + bound() / 64).
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (size_t word = 0; word < used_.size(); ++word) {
      for (uint64_t left = used_[word]; left != 0; left &= left - 1) {
        visit(static_cast<LocationId>(word * kIdsPerWord + std::countr_zero(left)));
      }
    }
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kLineShift = 6;
  static constexpr uint64_t kLineSize = 1 << kLineShift;
  static constexpr uint64_t kLargeLines = 64;
  static constexpr size_t kIdsPerWord = 64;

  // The ranges on a cache line, with a bit for every byte that they have of it. The first part has
  // the newest ones and all the others are full.
  struct alignas(kLineSize) LinePart {
    static constexpr uint32_t kRoom = 4;

    std::array<uint64_t, kRoom> bytes{};
    std::array<LocationId, kRoom> ids{};
    uint32_t next = 0;
    uint16_t count = 0;
    uint16_t crossing = 0;  // a bit for every range that lies on other lines, too
  };
  static_assert(sizeof(LinePart) == kLineSize);
  static constexpr uint32_t kNoComponent = 0xFFFFFFFFU;

  static size_t mix(uint64_t value) {
    const uint64_t hash = value * 0x9E3779B97F4A7C15ULL;
    return hash ^ (hash >> 32);
  }
  struct KeyHash {
    size_t operator()(const LocationKey& key) const {
      return mix(key.address ^ (static_cast<uint64_t>(key.size) << 56));
    }
  };
  // Not the number itself: the lines of two large blocks of memory would fill the same slice of
  // the table, and every look-up would go through it.
  struct LineHash {
    size_t operator()(uint64_t line) const { return mix(line); }
  };
  static uint64_t first_line(const LocationKey& key) { return key.address >> kLineShift; }
  static uint64_t last_line(const LocationKey& key) {
    return (key.address + key.size - 1) >> kLineShift;
  }
  // The location of a key that was looked up lately.
  struct Recent {
    LocationKey key;
    LocationId id = LocationTable::kNone;
  };
  static constexpr size_t kRecent = 1024;
  void remember(const LocationKey& key, LocationId id) {
    recent_[KeyHash()(key) % kRecent] = {key, id};
  }

  static bool large(const LocationKey& key) {
    return last_line(key) - first_line(key) >= kLargeLines;
  }
  static bool crosses(const LocationKey& key) { return first_line(key) != last_line(key); }
  // Whether it stands on the cache lines that it touches.
  static bool on_lines(const LocationKey& key) { return key.size != 0 && !large(key); }
  // A bit for every byte of the range on one of its lines.
  static uint64_t bytes_on(const LocationKey& key, uint64_t line) {
    const uint64_t first = line == first_line(key) ? key.address % kLineSize : 0;
    const uint64_t last =
        line == last_line(key) ? (key.address + key.size - 1) % kLineSize : kLineSize - 1;
    return (UINT64_MAX >> (kLineSize - 1 - last)) & (UINT64_MAX << first);
  }
  uint32_t parts_of(uint64_t line) const {
    const auto at = lines_.find(line);
    return at == lines_.end() ? kNoComponent : at->second;
  }
  // Of a range that stands on its lines.
  LocationId known_on_line(const LocationKey& key) const;
  LocationId find_slowly(const LocationKey& key, bool* is_new);
  LocationId new_id(const LocationKey& key);
  void connect(LocationId id);
  void put_on_line(uint64_t line, LocationId id);
  void take_off_line(uint64_t line, LocationId id);
  // Of a large range: it is shorter than two to this power, and not shorter than half of that.
  static int width_of(const LocationKey& key) { return std::bit_width(key.size); }
  template <typename Visit>
  void for_each_overlapping(const LocationKey& key, const Visit& visit) const;

  std::vector<LocationId> named_;  // by address
  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);
  tsl::robin_map<LocationKey, LocationId, KeyHash> ids_;  // of what is on no line, and has no name
  tsl::robin_map<uint64_t, uint32_t, LineHash> lines_;    // with ranges: their first part
  std::vector<LinePart, HugePageAllocator<LinePart>> parts_;
  std::vector<uint32_t> free_parts_;
  std::map<int, std::set<std::pair<uint64_t, LocationId>>> large_;  // by width and address
  std::vector<LocationKey> keys_;
  std::vector<std::vector<LocationId>> others_;
  std::vector<uint64_t> used_;  // a bit for each id
  std::vector<LocationId> free_;
  size_t size_ = 0;
};

}  // namespace tsomon
