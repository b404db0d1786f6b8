// How many threads and units the events of an input have.
//
// Contract    Events come in program order inside each thread. A unit is what `tsomon check` says
//             it is: the outermost begin to its end, each part between two condition waits, and
//             every event that matters outside of them.
// Complexity  O(1) for an event, without branches on what cannot be foreseen.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/trace.h"

namespace tsomon {

class EventCount {
 public:
  void add(const EventBlock& block) {
    constexpr uint32_t kBegin = kind_mask(EventKind::kUnitBegin);
    constexpr uint32_t kEnd = kind_mask(EventKind::kUnitEnd);
    constexpr uint32_t kOutside = kBegin | kinds::kNodes;
    constexpr uint32_t kInside = kind_mask(EventKind::kWait);
    uint64_t units = 0;
    for (const Event& event : block.events) {
      if (event.thread >= threads_.size()) {
        threads_.resize(event.thread + 1);
      }
      ThreadCount& thread = threads_[event.thread];
      const uint32_t kind = 1U << event.kind_bits;
      const uint32_t inside = thread.depth != 0 ? 1 : 0;
      units += (kind & (inside != 0 ? kInside : kOutside)) != 0 ? 1 : 0;
      thread.depth += (kind & kBegin) != 0 ? 1 : 0;
      thread.depth -= (kind & kEnd) != 0 ? inside : 0;
      thread.seen = 1;
    }
    units_ += units;
  }
  uint64_t units() const { return units_; }
  uint32_t threads() const {
    uint32_t all = 0;
    for (const ThreadCount& thread : threads_) {
      all += thread.seen;
    }
    return all;
  }

 private:
  struct ThreadCount {
    uint32_t depth = 0;  // of open units
    uint32_t seen = 0;   // 1: has an event
  };

  std::vector<ThreadCount> threads_;
  uint64_t units_ = 0;
};

}  // namespace tsomon
