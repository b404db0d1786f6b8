// A partial order on a few thousand elements that grows edge by edge.
//
// Complexity  n*n/8 bytes; reaches() O(1); insert() O(n * n/64).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tsomon {

class PartialOrder {
 public:
  explicit PartialOrder(uint32_t size = 0)
      : size_(size), words_((size + 63) / 64), rows_(static_cast<size_t>(size) * words_, 0) {
    for (uint32_t i = 0; i < size; ++i) {
      set(i, i);
    }
  }

  uint32_t size() const { return size_; }
  size_t bytes() const { return rows_.size() * sizeof(uint64_t); }

  // from == to, or from comes before to.
  bool reaches(uint32_t from, uint32_t to) const {
    return ((row(from)[to / 64] >> (to % 64)) & 1) != 0;
  }

  // Bit j of it: from == j, or from comes before j.
  std::span<const uint64_t> row_of(uint32_t from) const { return {row(from), words_}; }

  // Adds from -> to alone; for an order whose every pair is added.
  void set(uint32_t from, uint32_t to) {
    rows_[static_cast<size_t>(from) * words_ + to / 64] |= uint64_t{1} << (to % 64);
  }

  void set_row(uint32_t from, std::span<const uint64_t> bits) {
    std::copy(bits.begin(), bits.end(), rows_.begin() + static_cast<ptrdiff_t>(from * words_));
  }

  // Calls function(i) for all elements that `from` reaches, itself included.
  template <typename Function>
  void for_each_after(uint32_t from, const Function& function) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t bits = row(from)[word]; bits != 0; bits &= bits - 1) {
        function(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits)));
      }
    }
  }

  // Adds from -> to and what follows; false (and unchanged) when `to` already reaches `from`. Adds
  // the rows and words that it looked at to `work`.
  bool insert(uint32_t from, uint32_t to, uint64_t* work) {
    if (reaches(to, from)) {
      return false;
    }
    if (!reaches(from, to)) {
      *work += size_;
      for (uint32_t i = 0; i < size_; ++i) {
        if (reaches(i, from)) {
          merge(i, to);
          *work += words_;
        }
      }
    }
    return true;
  }

  void add_row(uint32_t from, std::span<const uint64_t> bits) {
    uint64_t* const mine = rows_.data() + static_cast<size_t>(from) * words_;
    for (size_t word = 0; word < words_; ++word) {
      mine[word] |= bits[word];
    }
  }

  // Row `node` takes over everything row `other` reaches; for building an order from the back.
  void merge(uint32_t node, uint32_t other) { add_row(node, row_of(other)); }

 private:
  const uint64_t* row(uint32_t node) const {
    return rows_.data() + static_cast<size_t>(node) * words_;
  }

  uint32_t size_;
  size_t words_;
  std::vector<uint64_t> rows_;
};

}  // namespace tsomon
