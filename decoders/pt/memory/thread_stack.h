// What a thread has on its stack, at places relative to a stack pointer whose value need not be
// known.
//
// Regions     Places are relative to a node: the stack pointer where the path began. A stack
//             pointer that is aligned, or moved by an amount that is not known, starts a region
//             below; it ends when the stack pointer comes back. Regions do not overlap.
// Frames      A call that the path shows begins a frame, up to its return address. Nobody but the
//             path itself writes into a frame as long as no pointer into it has gone where it is
//             not followed: it is then exposed. That holds for programs that do not write where
//             none of their objects is. What lies above the first call belongs to frames whose
//             pointers may have gone anywhere before: they count as exposed unless `assumed`, or
//             unless their function's code says otherwise (escape_analysis.h).
// Exposed     What was pushed there (return addresses, registers that are to be kept) has no name
//             in the program, and is written by nobody else as long as no pointer to it is made.
//             The rest of an exposed frame is only given where `shared` says that no other
//             thread may write, and until a store to an address that is not known.
// Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "decoders/pt/values/symbolic_memory.h"
#include "decoders/pt/values/symbolic_values.h"

namespace tsomon::pt {

class ThreadStack {
 public:
  struct Options {
    bool assumed = false;  // frames from before the path are not exposed
    bool alone = false;    // no other thread writes this thread's stack
  };

  explicit ThreadStack(Options options) : options_(options) {}

  static constexpr uint64_t kEverything = uint64_t{1} << 40;  // as a size
  static constexpr uint64_t kFar = uint64_t{1} << 41;

  // Nothing is known; the stack pointer is `node`.
  void restart(uint32_t node);
  // Other places are no place of a stack; `at` is asked for near ones only.
  static bool is_near(SymbolicValue at) { return at.known() || at.offset + kFar / 2 < kFar; }
  bool owns(uint32_t node) const {
    return (nodes_ >> (node & 63U) & 1U) != 0 && node != 0 &&
           (node == last_node_ || is_region(node));
  }
  // Whether the stack pointer `to` is in the last region; if so, it is there from now on.
  bool move_inside(SymbolicValue to) {
    if (to.node != last_node_) {
      return false;
    }
    stack_ = static_cast<int64_t>(to.offset);
    return true;
  }
  // The stack pointer is `to`, an operation on what it was.
  void move(SymbolicValue to, const SymbolicValues& terms) {
    if (!move_inside(to)) {
      move_outside(to, terms);
    }
  }

  // The frame that the stack pointer is in was there before, and nothing is known of it.
  bool asks_for_frame() const { return asks_; }
  // The answer, once: where its return address is when no pointer into it has gone anywhere.
  void answer(std::optional<int64_t> return_address);
  int64_t stack_pointer() const { return stack_; }  // relative to the last region's node
  void call(int64_t return_address);
  void leave(int64_t return_address);

  // No pointer into the frame has gone where it is not followed.
  bool is_private(SymbolicValue at) {
    return !frame_of(region_of(at.node), static_cast<int64_t>(at.offset)).exposed;
  }
  // The term at a place; a new leaf where nothing is known and the word is the path's own.
  SymbolicValue load(SymbolicValue at, unsigned size, SymbolicValues& terms);
  void store(SymbolicValue at, unsigned size, SymbolicValue value, bool pushed,
             SymbolicValues& terms);
  void store_unknown(SymbolicValue at, uint64_t size);
  void forget_all();
  // Somewhere in the object at `at`.
  void store_around(SymbolicValue at);
  // Through a pointer that is not known, or by the kernel.
  void store_anywhere() { ++epoch_; }
  // A pointer into the stack goes where it is not followed.
  void leak(SymbolicValue pointer);
  // The terms in these bytes go where they are not followed.
  void leak_content(SymbolicValue at, uint64_t size);
  // Below the stack pointer and what a signal leaves alone there.
  void forget_below(SymbolicValue stack);

  template <typename Apply>
  void each_term(Apply apply);

 private:
  static constexpr int64_t kAbove = int64_t{1} << 12;  // bytes that are kept above the first node
  static constexpr int64_t kAboveOthers = int64_t{1} << 8;
  static constexpr int64_t kBelow = int64_t{1} << 22;

  struct Storage {
    std::vector<SymbolicWord> words;  // downwards from `above`
    int64_t above = kAbove;

    int64_t index(int64_t unit) const { return above / 4 - 1 - unit; }
    SymbolicWord* find(int64_t unit) {
      const int64_t at = index(unit);
      return at >= 0 && at < static_cast<int64_t>(words.size()) ? &words[static_cast<size_t>(at)]
                                                                : nullptr;
    }
    int64_t lowest() const { return above / 4 - static_cast<int64_t>(words.size()); }
    int64_t from(int64_t unit) const { return std::max(unit, lowest()); }
    int64_t upto(int64_t unit) const { return std::min(unit, above / 4 - 1); }
    SymbolicWord* make(int64_t unit) {
      const int64_t at = index(unit);
      if (at < 0 || at >= (above + kBelow) / 4) {
        return nullptr;
      }
      if (at >= static_cast<int64_t>(words.size())) {
        words.resize(static_cast<size_t>(at) + 128);
      }
      return &words[static_cast<size_t>(at)];
    }
  };
  struct Region {
    uint32_t node = 0;
    int64_t stack = 0;  // the stack pointer, where the region was left for one below
    SymbolicMemory<Storage> words;
  };
  struct Frame {
    uint32_t region = 0;  // position
    int64_t top = 0;      // its return address
    bool exposed = false;
  };

  void move_outside(SymbolicValue to, const SymbolicValues& terms);
  bool is_region(uint32_t node) const;
  void regions_changed();
  size_t region_of(uint32_t node) const {
    size_t at = last_region_;
    while (regions_[at].node != node) {
      --at;
    }
    return at;
  }
  Frame& frame_of(size_t region, int64_t place) {
    Frame* at = frames_.data() + frames_.size() - 1;
    while (at != frames_.data() &&
           (at->region > region || (at->region == region && at->top + 8 <= place))) {
      --at;
    }
    return *at;
  }
  void expose(Frame& frame);

  Options options_;
  std::vector<Region> regions_ = std::vector<Region>(1);
  uint64_t nodes_ = 0;      // of the regions: the lower bits of each as the position of a bit
  uint32_t last_node_ = 0;  // of the last region
  size_t last_region_ = 0;  // its position
  std::vector<Frame> frames_;
  bool asks_ = false;
  uint32_t epoch_ = 0;  // stores that may have changed what is exposed
  int64_t stack_ = 0;   // the stack pointer, in the last region
};

template <typename Apply>
void ThreadStack::each_term(Apply apply) {
  for (Region& region : regions_) {
    SymbolicValue node{0, region.node, 0};
    apply(node);
    region.node = node.node;
    regions_changed();
    for (SymbolicWord& word : region.words.words) {
      if (word.size != 0 && word.size != SymbolicWord::kTail) {
        apply(word.value);
      }
    }
  }
}

}  // namespace tsomon::pt
