#include "online/order/adjacency_lists.h"

#include <algorithm>

#include "tso/support/result.h"
#include "tso/support/work.h"

namespace tsomon {

uint32_t AdjacencyLists::find_in_block(const List& list, Id item) const {
  spend(1 + list.size / 16);
  const auto* words = reinterpret_cast<const __m128i*>(block(list));
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(item));
  // Blocks are whole units, so reading past the last item stays inside.
  for (uint32_t at = 0; at < list.size; at += 16, words += 4) {
    const __m128i a = _mm_cmpeq_epi32(_mm_loadu_si128(words), wanted);
    const __m128i b = _mm_cmpeq_epi32(_mm_loadu_si128(words + 1), wanted);
    const __m128i c = _mm_cmpeq_epi32(_mm_loadu_si128(words + 2), wanted);
    const __m128i d = _mm_cmpeq_epi32(_mm_loadu_si128(words + 3), wanted);
    const __m128i all = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    const auto equal = static_cast<uint32_t>(_mm_movemask_epi8(all));
    if (equal != 0) {
      return std::min(at + static_cast<uint32_t>(std::countr_zero(equal)), list.size);
    }
  }
  return list.size;
}

void AdjacencyLists::append_to_block(List& list, Id item) {
  if (list.block == 0) {
    const uint32_t place = allocate(0);
    std::copy_n(list.place.data(), list.size, &pool_[uint64_t{place} * kUnit]);
    list.block = place;
    list.place[0] = 0;
  } else if (list.size == kUnit << list.place[0]) {
    const unsigned larger = list.place[0] + 1;
    const uint32_t place = allocate(larger);
    std::copy_n(block(list), list.size, &pool_[uint64_t{place} * kUnit]);
    release(list);
    list.block = place;
    list.place[0] = larger;
  }
  block(list)[list.size++] = item;
}

void AdjacencyLists::erase_in_block(List& list, Id item) {
  const uint32_t position = find_in_block(list, item);
  Id* const items = block(list);
  items[position] = items[--list.size];
}

void AdjacencyLists::replace(Id list, Id item, Id other) {
  List& at = lists_[list];
  if (at.block == 0) {
    at.place[static_cast<unsigned>(std::countr_zero(find_in_place(at, item)))] = other;
  } else {
    block(at)[find_in_block(at, item)] = other;
  }
}

uint32_t AdjacencyLists::allocate(unsigned block_class) {
  TSOMON_CHECK(block_class < kClasses, "a node has more than 2^31 edges");
  uint32_t& head = free_[block_class];
  if (head != 0) {
    const uint32_t place = head;
    head = pool_[uint64_t{place} * kUnit];
    return place;
  }
  const uint64_t place = pool_.size() / kUnit;
  TSOMON_CHECK(place <= UINT32_MAX, "the edges need more than 2^36 items");
  pool_.resize(pool_.size() + (uint64_t{kUnit} << block_class));
  return static_cast<uint32_t>(place);
}

void AdjacencyLists::release(List& list) {
  uint32_t& head = free_[list.place[0]];
  *block(list) = head;
  head = list.block;
  list.block = 0;
}

}  // namespace tsomon
