// Strings to dense ids and back. Ids count from 0 in order of first appearance and never change.
//
// Memory: every distinct string once. intern() is O(length) expected; text() is O(1).
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tsomon {

class Interner {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFU;

  uint32_t intern(std::string_view text);
  uint32_t find(std::string_view text) const;  // kNone when absent
  std::string_view text(uint32_t id) const;
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }

 private:
  struct Entry {
    uint64_t offset;  // into bytes_
    uint32_t length;
    uint32_t hash;
  };
  uint32_t slot_of(std::string_view text, uint32_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing; kNone is free
};

}  // namespace tsomon
