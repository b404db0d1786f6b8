// Lists of numbers, one for each pair of a key and a thread, in three arrays.
//
// Purpose     What threads do with cells and locks is looked up by key, then by thread, and is as
//             long as the trace: no allocation for each list.
// Memory      4 bytes an item and a key, 8 for each list; while it is made 4 for each pair, or 8 an
//             item where there are many more pairs than items.
// Complexity  O(n) to make, or O(n log n) where there are many pairs; O(1) to look up a key.
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
  // Items with their keys, which are below `keys`, and their threads, below `threads`; `most`: no
  // more items. visit(add) calls add(thread, key, item), for each key with ascending items of each
  // thread, and is called twice.
  template <typename Visit>
  GroupedLists(uint32_t keys, uint32_t threads, size_t most, const Visit& visit) {
    if (uint64_t{keys} * threads <= most / 2 + kFewLists) {
      group_by_both(keys, threads, visit);
    } else {
      group_by_key(keys, visit);
    }
    starts_.shrink_to_fit();
  }

  Lists of(uint32_t key) const {
    return {{starts_.data() + first_[key], items_.data()},
            {starts_.data() + first_[key + 1], items_.data()}};
  }

 private:
  static constexpr uint64_t kFewLists = 10'000;

  // Counts for each pair of a key and a thread.
  template <typename Visit>
  void group_by_both(uint32_t keys, uint32_t threads, const Visit& visit) {
    const auto pair = [&](uint32_t thread, uint32_t key) {
      return static_cast<size_t>(key) * threads + thread;
    };
    std::vector<uint32_t> ends(static_cast<size_t>(keys) * threads + 1, 0);
    visit([&](uint32_t thread, uint32_t key, uint32_t) { ++ends[pair(thread, key) + 1]; });
    first_.reserve(keys + 1);
    for (uint32_t key = 0; key < keys; ++key) {
      first_.push_back(static_cast<uint32_t>(starts_.size()));
      for (uint32_t thread = 0; thread < threads; ++thread) {
        const uint32_t begin = ends[pair(thread, key)];
        uint32_t& end = ends[pair(thread, key) + 1];
        if (end > 0) {
          starts_.push_back({thread, begin});
        }
        end += begin;
      }
    }
    const uint32_t total = ends.back();
    first_.push_back(static_cast<uint32_t>(starts_.size()));
    starts_.push_back({0, total});
    spend(ends.size() + 4 * uint64_t{total});
    items_.resize(total);
    // Where each list begins moves on to where it ends.
    visit([&](uint32_t thread, uint32_t key, uint32_t item) {
      items_[ends[pair(thread, key)]++] = item;
    });
  }

  // Lists are put in the order of their threads afterwards.
  template <typename Visit>
  void group_by_key(uint32_t keys, const Visit& visit) {
    std::vector<uint32_t> items(keys + 1, 0);
    visit([&](uint32_t, uint32_t key, uint32_t) { ++items[key + 1]; });
    for (uint32_t key = 0; key < keys; ++key) {
      items[key + 1] += items[key];
    }
    spend(4 * uint64_t{keys} + 8 * uint64_t{items[keys]});
    std::vector<uint64_t> sorted(items[keys]);  // by key; thread and item
    // Each key's place moves on to that of the next key.
    visit([&](uint32_t thread, uint32_t key, uint32_t item) {
      sorted[items[key]++] = (uint64_t{thread} << 32) | item;
    });
    first_.assign(keys + 1, 0);
    items_.resize(sorted.size());
    uint32_t begin = 0;
    for (uint32_t key = 0; key < keys; ++key) {
      const uint32_t end = items[key];
      const auto first = sorted.begin() + begin;
      const auto last = sorted.begin() + end;
      if (!std::is_sorted(first, last)) {
        std::sort(first, last);
      }
      first_[key] = static_cast<uint32_t>(starts_.size());
      for (uint32_t at = begin; at < end; ++at) {
        const auto thread = static_cast<uint32_t>(sorted[at] >> 32);
        if (at == begin || thread != starts_.back().thread) {
          starts_.push_back({thread, at});
        }
        items_[at] = static_cast<uint32_t>(sorted[at]);
      }
      begin = end;
    }
    first_[keys] = static_cast<uint32_t>(starts_.size());
    starts_.push_back({0, begin});
  }

  std::vector<uint32_t> first_;  // of starts_, by key
  std::vector<Start> starts_;
  std::vector<uint32_t> items_;
};

}  // namespace tsomon::predict
