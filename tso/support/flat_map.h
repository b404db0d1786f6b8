// A map from integers that remembers the order of insertion, in two arrays.
//
// Purpose     What searches and tables over events, locations and pairs of events look up in their
//             inner loops: no allocation per entry, few in all, the entries in one piece.
// Complexity  O(1) expected; up to kSearched entries are compared one by one. clear() is
//             O(entries).
// Misses      Erasing. Pointers are valid until the next insertion.
// Thread-safety: const access is safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tsomon {

template <typename Key, typename Value>
class FlatMap {
 public:
  struct Entry {
    Key key;
    Value value;
  };

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const std::vector<Entry>& entries() const { return entries_; }  // in order of insertion

  void reserve(size_t entries) {
    entries_.reserve(entries);
    if (entries > kSearched && 2 * entries > slots_.size()) {
      grow(entries);
    }
  }

  const Value* find(Key key) const {
    if (slots_.empty()) {
      for (const Entry& entry : entries_) {
        if (entry.key == key) {
          return &entry.value;
        }
      }
      return nullptr;
    }
    const uint32_t slot = slots_[place(key)];
    return slot == 0 ? nullptr : &entries_[slot - 1].value;
  }
  Value* find(Key key) { return const_cast<Value*>(std::as_const(*this).find(key)); }
  bool contains(Key key) const { return find(key) != nullptr; }

  // The value of the key, and whether it is new.
  std::pair<Value*, bool> try_emplace(Key key, Value value) {
    if (slots_.empty()) {
      if (Value* const found = find(key)) {
        return {found, false};
      }
      if (entries_.size() < kSearched) {
        entries_.push_back({key, value});
        return {&entries_.back().value, true};
      }
      grow(entries_.size() + 1);
    }
    size_t at = place(key);
    if (slots_[at] != 0) {
      return {&entries_[slots_[at] - 1].value, false};
    }
    if (2 * (entries_.size() + 1) > slots_.size()) {
      grow(entries_.size() + 1);
      at = place(key);
    }
    entries_.push_back({key, value});
    slots_[at] = static_cast<uint32_t>(entries_.size());
    return {&entries_.back().value, true};
  }
  Value& operator[](Key key) { return *try_emplace(key, Value()).first; }

  void clear() {
    // Entries that share a run of slots find theirs only while all are there: the slots first.
    if (!slots_.empty()) {
      for (const Entry& entry : entries_) {
        freed_.push_back(place(entry.key));
      }
      for (const size_t at : freed_) {
        slots_[at] = 0;
      }
      freed_.clear();
    }
    entries_.clear();
  }

 private:
  static constexpr size_t kSearched = 8;

  // The slot of the key, or the free one where it belongs.
  size_t place(Key key) const {
    const size_t mask = slots_.size() - 1;
    uint64_t hash = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
    size_t at = static_cast<size_t>(hash) & mask;
    while (slots_[at] != 0 && entries_[slots_[at] - 1].key != key) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow(size_t entries) {
    size_t size = 4 * kSearched;
    while (size < 4 * entries) {
      size *= 2;
    }
    slots_.assign(size, 0);
    for (size_t i = 0; i < entries_.size(); ++i) {
      slots_[place(entries_[i].key)] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // number of the entry, from 1; 0: free. Empty: few entries
  std::vector<size_t> freed_;    // inside clear()
};

}  // namespace tsomon
