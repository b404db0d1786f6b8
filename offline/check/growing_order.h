// A partial order that grows edge by edge, draws the consequences it is told of, and can go back.
//
// Purpose     What the orientation search does all day: add an order of two events, see what
//             follows (forwarding constraints and values, theory section 5.1 and 5.3) or that it is impossible, take
//             it back.
// Complexity  n*n/4 bytes, and up to 128 MB to go back; reaches() O(1); insert() O((elements
//             before + elements after) * n/64) for every edge that is new, and one look at each
//             consequence of a changed element.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tso/order/event_graph.h"
#include "tso/order/partial_order.h"

namespace tsomon {

class GrowingOrder {
 public:
  explicit GrowingOrder(const PartialOrder& order);

  uint32_t size() const { return size_; }

  // from == to, or from comes before to.
  bool reaches(uint32_t from, uint32_t to) const {
    return ((after_[row(from) + to / 64] >> (to % 64)) & 1) != 0;
  }

  // Whenever when.from comes before when.to, then.from comes before then.to. Before settle().
  void imply(Edge when, Edge then) { implications_[when.from].push_back({when.to, then}); }
  // Draws all consequences of what is there; false: they contradict each other. From here on
  // changes can be taken back.
  bool settle();

  // Adds from -> to and all that follows; false: that is impossible, undo() to a mark has to
  // follow.
  bool insert(uint32_t from, uint32_t to);

  // exhausted() once so many more words of rows have been looked at, or so much has changed that
  // going back would need more than kMaxChanges. What follows is not all drawn any more then.
  void limit_work(uint64_t words) { limit_ = work_ + words; }
  uint64_t work() const { return work_; }
  bool exhausted() const { return work_ > limit_ || trail_.size() > kMaxChanges; }
  static constexpr size_t kMaxChanges = size_t{1} << 23;  // 16 bytes each

  PartialOrder current() const;

  size_t mark() const { return trail_.size(); }
  void undo(size_t mark);

  // Calls function(i) for all elements that `from` reaches, itself included.
  template <typename Function>
  void for_each_after(uint32_t from, const Function& function) const {
    for_each_bit(after_.data() + row(from), function);
  }
  template <typename Function>
  void for_each_before(uint32_t to, const Function& function) const {
    for_each_bit(before_.data() + row(to), function);
  }

  // Only those in `among`, a bit for each element, from which they are taken.
  template <typename Function>
  void take_before(uint32_t to, std::vector<uint64_t>* among, const Function& function) const {
    for (size_t word = 0; word < words_; ++word) {
      uint64_t bits = before_[row(to) + word] & (*among)[word];
      (*among)[word] ^= bits;
      for (; bits != 0; bits &= bits - 1) {
        function(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits)));
      }
    }
  }

  // Whether function(i) for some element of `among` that reaches `to`, itself included.
  template <typename Function>
  bool any_before(uint32_t to, const std::vector<uint64_t>& among, const Function& function) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t bits = before_[row(to) + word] & among[word]; bits != 0; bits &= bits - 1) {
        if (function(static_cast<uint32_t>(word * 64) +
                     static_cast<uint32_t>(__builtin_ctzll(bits)))) {
          return true;
        }
      }
    }
    return false;
  }

  // How many come before `to`, itself included.
  uint32_t count_before(uint32_t to) const {
    uint32_t count = 0;
    for (size_t word = 0; word < words_; ++word) {
      count += static_cast<uint32_t>(__builtin_popcountll(before_[row(to) + word]));
    }
    return count;
  }

 private:
  struct Implication {
    uint32_t target;
    Edge then;
  };
  struct Change {
    uint64_t place;  // word of before_ (odd) or after_ (even), times two
    uint64_t old;
  };

  size_t row(uint32_t element) const { return static_cast<size_t>(element) * words_; }
  template <typename Function>
  void for_each_bit(const uint64_t* words, const Function& function) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1) {
        function(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(__builtin_ctzll(bits)));
      }
    }
  }
  bool merge(bool before, uint32_t target, uint32_t source);
  void draw(uint32_t element);
  bool drain();

  uint32_t size_;
  size_t words_;
  std::vector<uint64_t> after_;   // rows: what an element reaches
  std::vector<uint64_t> before_;  // rows: what reaches it
  std::vector<std::vector<Implication>> implications_;
  std::vector<Edge> pending_;
  std::vector<Change> trail_;
  uint64_t work_ = 0;
  uint64_t limit_ = ~uint64_t{0};
  bool settled_ = false;
};

}  // namespace tsomon
