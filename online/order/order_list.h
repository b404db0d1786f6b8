// A total order of small integers with constant-time comparison.
//
// Purpose     The order that TopologicalOrder maintains: elements are appended, removed and moved
//             next to others, and "which comes first" is one comparison of two numbers.
// Labels      Every element has a 64-bit label that grows along the order. Elements appended at an
//             end are 2^stride_bits apart; an element moved between two others gets a label between
//             theirs. When there is none, the labels of the smallest sufficiently empty window
//             around the place are spread evenly. The place of an erased element is not used for
//             another one.
// Complexity  Appending, comparing, erasing O(1); moving amortised O(log n). All labels are spread
//             anew after 2^(63 - stride_bits) elements were appended to one end: O(n), amortised
//             nothing.
// Memory      16 bytes for every id ever used. No allocation but in grow().
// Thread-safety: none; concurrent reads are fine.
// Source      Bender, Cole, Demaine, Farach-Colton, Zito: Two Simplified Algorithms for Maintaining
//             Order in a List, ESA 2002, section 2, with windows that grow fourfold and capacities
//             that grow twofold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tsomon {

class OrderList {
 public:
  using Id = uint32_t;
  static constexpr Id kEnd = 0;  // before the first element and after the last

  // At most 60. The fewer, the sooner room between two elements runs out; the more, at the ends.
  explicit OrderList(unsigned stride_bits = 32) : stride_bits_(stride_bits) { grow(1); }

  void grow(Id bound);  // ids below `bound` may be used from now on
  void push_back(Id id) {
    const Id last = links_[kEnd].prev;
    if (last_label_ > kMaxLabel - stride()) [[unlikely]] {
      spread_all();
    }
    last_label_ += stride();
    labels_[id] = last_label_;
    links_[id] = {last, kEnd};
    links_[last].next = id;
    links_[kEnd].prev = id;
  }
  void erase(Id id) {
    unlink(id);
    labels_[id] = 0;
  }
  // An element with its label.
  struct Placed {
    uint64_t label;
    Id id;
  };

  // `ids` in the order that they shall have; none of them is `place`.
  void move_after(Id place, std::span<const Id> ids);
  void move_before(Id place, std::span<const Id> ids);

  bool contains(Id id) const { return labels_[id] != 0; }
  bool before(Id a, Id b) const { return labels_[a] < labels_[b]; }
  uint64_t label(Id id) const { return labels_[id]; }  // of an element; grows along the order
  Placed placed(Id id) const { return {labels_[id], id}; }
  Id first() const { return links_[kEnd].next; }
  Id last() const { return links_[kEnd].prev; }
  Id next(Id id) const { return links_[id].next; }
  Id prev(Id id) const { return links_[id].prev; }
  size_t memory_bytes() const {
    return labels_.capacity() * sizeof(labels_[0]) + links_.capacity() * sizeof(links_[0]);
  }

  std::string check_invariants() const;  // empty, or what is wrong

 private:
  struct Links {
    Id prev = kEnd;
    Id next = kEnd;
  };
  static constexpr uint64_t kMiddle = uint64_t{1} << 63;
  static constexpr uint64_t kMaxLabel = UINT64_MAX;

  uint64_t stride() const { return uint64_t{1} << stride_bits_; }
  void unlink(Id id) {
    const Links links = links_[id];
    links_[links.prev].next = links.next;
    links_[links.next].prev = links.prev;
  }
  void unlink(std::span<const Id> ids);
  void link(Id front, Id behind, std::span<const Id> ids);
  void label_run(Id first, Id last, size_t count);
  void spread_around(Id first, Id last, size_t count);
  void spread_all();

  std::vector<uint64_t> labels_;  // 0: not in the list
  std::vector<Links> links_;
  unsigned stride_bits_;
  uint64_t last_label_ = kMiddle;  // at least the label of the last element
};

}  // namespace tsomon
