// For each of many small integers a list of others: one direction of a graph's edges.
//
// Purpose     The edges of TopologicalOrder. Lists are sets: the caller appends what is not there.
// Layout      32 bytes a list: the length and up to six items in place, or the place of a block in
//             a pool that all lists share. Blocks have 16, 32, 64... items and are recycled; a
//             list keeps its block until it is cleared.
// Complexity  append O(1) amortised; contains, erase and replace O(length), four items a
//             comparison. The order of the items changes with erase.
// Memory      No allocation once the pool and the number of lists have reached their largest size.
// Thread-safety: none; concurrent reads are fine.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <emmintrin.h>

namespace tsomon {

class AdjacencyLists {
 public:
  using Id = uint32_t;

  void grow(Id bound) { lists_.resize(bound > lists_.size() ? bound : lists_.size()); }
  uint32_t size(Id list) const { return lists_[list].size; }
  std::span<const Id> items(Id list) const {
    const List& at = lists_[list];
    return {at.block == 0 ? at.place.data() : &pool_[uint64_t{at.block} * kUnit], at.size};
  }
  bool contains(Id list, Id item) const {
    const List& at = lists_[list];
    return at.block == 0 ? find_in_place(at, item) != 0 : find_in_block(at, item) != at.size;
  }
  void append(Id list, Id item) {
    List& at = lists_[list];
    if (at.block == 0 && at.size < kInPlace) [[likely]] {
      at.place[at.size++] = item;
    } else {
      append_to_block(at, item);
    }
  }
  void erase(Id list, Id item) {  // item is in the list
    List& at = lists_[list];
    if (at.block == 0) [[likely]] {
      const auto position = static_cast<unsigned>(std::countr_zero(find_in_place(at, item)));
      at.place[position] = at.place[--at.size];
    } else {
      erase_in_block(at, item);
    }
  }
  void replace(Id list, Id item, Id other);  // item is in the list, other is not
  void clear(Id list) {
    List& at = lists_[list];
    if (at.block != 0) [[unlikely]] {
      release(at);
    }
    at.size = 0;
  }
  size_t memory_bytes() const {
    return lists_.capacity() * sizeof(List) + pool_.capacity() * sizeof(pool_[0]);
  }

 private:
  static constexpr uint32_t kInPlace = 6;
  static constexpr uint32_t kUnit = 16;  // items in the smallest block
  static constexpr unsigned kClasses = 28;

  struct alignas(32) List {
    uint32_t size = 0;
    uint32_t block = 0;                // place in the pool in kUnits; 0: the items are here
    std::array<Id, kInPlace> place{};  // of a list with a block the first is the block's class
  };
  static_assert(sizeof(List) == 32, "two lists a cache line");

  // One bit for every position that holds the item.
  static uint32_t find_in_place(const List& list, Id item) {
    const auto* words = reinterpret_cast<const __m128i*>(&list);
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(item));
    const __m128i low = _mm_cmpeq_epi32(_mm_load_si128(words), wanted);
    const __m128i high = _mm_cmpeq_epi32(_mm_load_si128(words + 1), wanted);
    const __m128i both = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    const auto equal = static_cast<uint32_t>(_mm_movemask_epi8(both));
    return (equal >> 2) & ((1U << list.size) - 1);
  }
  uint32_t find_in_block(const List& list, Id item) const;  // size: not there
  void append_to_block(List& list, Id item);
  void erase_in_block(List& list, Id item);
  uint32_t allocate(unsigned block_class);
  void release(List& list);
  Id* block(const List& list) { return &pool_[uint64_t{list.block} * kUnit]; }
  const Id* block(const List& list) const { return &pool_[uint64_t{list.block} * kUnit]; }

  std::vector<List> lists_;
  std::vector<Id> pool_ = std::vector<Id>(kUnit);  // place 0 is never given away
  std::array<uint32_t, kClasses> free_{};          // first free block of each class; 0: none
};

}  // namespace tsomon
