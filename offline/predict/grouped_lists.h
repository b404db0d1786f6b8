// Lists of numbers, one for each pair of a key and a thread, in three arrays.
//
// Purpose     What threads do with cells and locks is looked up by key, then by thread, and is as
//             long as the trace: no allocation for each list.
// Memory      4 bytes an item and a key, 8 for each list.
// Complexity  O(n) to make; O(1) to look up a key.
// Thread-safety: const access is safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tso/support/work.h"

namespace tsomon::predict {

// What one thread does with one lock or one cell: indices in ascending order.
struct ThreadList {
  uint32_t thread = 0;
  std::span<const uint32_t> items;
};

class GroupedLists {
  struct Start {
    uint32_t thread = 0;
    uint32_t first = 0;  // of items_; the list ends where the next one begins
  };

 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = ThreadList;
    using difference_type = ptrdiff_t;
    using pointer = const ThreadList*;
    using reference = ThreadList;

    Iterator(const Start* start, const uint32_t* items) : start_(start), items_(items) {}
    ThreadList operator*() const {
      return {start_->thread, {items_ + start_->first, items_ + start_[1].first}};
    }
    Iterator& operator++() {
      ++start_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return start_ == other.start_; }
    bool operator!=(const Iterator& other) const { return start_ != other.start_; }

   private:
    const Start* start_;
    const uint32_t* items_;
  };
  // The lists of a key.
  class Lists {
   public:
    Lists(Iterator begin, Iterator end) : begin_(begin), end_(end) {}
    Iterator begin() const { return begin_; }
    Iterator end() const { return end_; }

   private:
    Iterator begin_;
    Iterator end_;
  };

  GroupedLists() = default;
  // Items with their keys, which are below `keys`. visit(add) calls add(thread, key, item), thread
  // after thread, and is called twice.
  template <typename Visit>
  GroupedLists(uint32_t keys, const Visit& visit) {
    constexpr uint32_t kNobody = 0xFFFFFFFFU;
    first_.assign(keys + 1, 0);
    std::vector<uint32_t> items(keys + 1, 0);
    std::vector<uint32_t> last(keys, kNobody);  // the thread of the key's last item
    visit([&](uint32_t thread, uint32_t key, uint32_t) {
      ++items[key + 1];
      first_[key + 1] += last[key] != thread ? 1 : 0;
      last[key] = thread;
    });
    for (uint32_t key = 0; key < keys; ++key) {
      first_[key + 1] += first_[key];
      items[key + 1] += items[key];
    }
    spend(4 * uint64_t{keys} + 4 * uint64_t{items[keys]});
    items_.resize(items[keys]);
    starts_.resize(first_[keys] + 1);
    starts_.back().first = items[keys];
    std::fill(last.begin(), last.end(), kNobody);
    // Each key's place moves on to that of the next key.
    visit([&](uint32_t thread, uint32_t key, uint32_t item) {
      if (last[key] != thread) {
        starts_[first_[key]++] = {thread, items[key]};
        last[key] = thread;
      }
      items_[items[key]++] = item;
    });
    for (uint32_t key = keys; key > 0; --key) {
      first_[key] = first_[key - 1];
    }
    first_[0] = 0;
  }

  Lists of(uint32_t key) const {
    return {{starts_.data() + first_[key], items_.data()},
            {starts_.data() + first_[key + 1], items_.data()}};
  }

 private:
  std::vector<uint32_t> first_;  // of starts_, by key
  std::vector<Start> starts_;
  std::vector<uint32_t> items_;
};

}  // namespace tsomon::predict
