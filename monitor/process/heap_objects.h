// Which object was at an address, for names in reports.
//
// Purpose     `objects=` records where memory is allocated and freed. A report then says which
//             allocation an access went to: "object(make_account bank.cpp:30)+0x8".
// Memory      The last kMaxObjects allocations. What an older one allocated has no name.
// Misses      An object after kMaxPassed others that were allocated inside the same bytes.
// Complexity  O(log objects) for an allocation or its end, O(1) for other events.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "tso/model/trace.h"

namespace tsomon {

class HeapObjects {
 public:
  static constexpr size_t kMaxObjects = size_t{1} << 18;
  static constexpr int kMaxPassed = 64;

  struct Place {
    uint32_t location = Event::kNoLocation;  // of the allocation, in the source
    uint64_t offset = 0;
  };

  // `event`: number in the input.
  void add(const Event& event, uint64_t number) {
    if (is(event, kind_mask(EventKind::kAllocate) | kind_mask(EventKind::kFree))) {
      change(event, number);
    }
  }
  // Of the memory at `address` when the input had got to that event.
  std::optional<Place> find(uint64_t address, uint64_t number) const;

 private:
  struct Object {
    uint64_t size = 0;
    uint32_t location = Event::kNoLocation;
    uint64_t from = 0;
    uint64_t to = UINT64_MAX;
  };
  using Objects = std::multimap<uint64_t, Object>;  // by address

  void change(const Event& event, uint64_t number);

  Objects objects_;
  std::deque<Objects::iterator> oldest_first_;
  std::unordered_map<uint64_t, Objects::iterator> live_;  // by address
};

// "object(make_account bank.cpp:30)+0x8"; `site` may be empty.
std::string object_name(const std::string& site, uint64_t offset);

}  // namespace tsomon
