// A queue in one piece of memory, for queues that are short and often empty.
//
// Complexity  O(1), push_back() amortised.
// Memory      Up to four times the largest number of elements, kept: room is made by doubling it,
//             and what was popped makes room only where it is more than half of everything.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

namespace tsomon {

template <typename T>
class Fifo {
 public:
  bool empty() const { return begin_ == items_.size(); }
  size_t size() const { return items_.size() - begin_; }
  T& front() { return items_[begin_]; }
  T& back() { return items_.back(); }
  auto begin() { return items_.begin() + static_cast<ptrdiff_t>(begin_); }
  auto end() { return items_.end(); }
  // One more element, with its default value, which is returned. Invalidates references.
  T& push_back() {
    // What was popped makes room once it is at least half of everything.
    if (items_.size() == items_.capacity() && begin_ > items_.size() / 2) {
      items_.erase(items_.begin(), begin());
      begin_ = 0;
    }
    return items_.emplace_back();
  }
  // Requires that it is not empty. References to others stay valid.
  void pop_front() {
    if (++begin_ == items_.size()) {
      clear();
    }
  }
  // Likewise.
  void pop_back() {
    items_.pop_back();
    if (empty()) {
      clear();
    }
  }
  // Before `place`, of this queue. O(elements after it). Invalidates references.
  void insert(typename std::vector<T>::iterator place, const T& item) {
    const auto at = place - begin();
    push_back() = item;
    std::rotate(begin() + at, std::prev(end()), end());
  }
  // O(size()).
  template <typename Condition>
  void erase_if(const Condition& condition) {
    items_.erase(std::remove_if(begin(), end(), condition), end());
    if (empty()) {
      clear();
    }
  }
  void clear() {
    items_.clear();
    begin_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t begin_ = 0;
};

}  // namespace tsomon
