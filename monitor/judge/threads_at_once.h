// How many threads of a stream there were at once.
//
// Purpose     Those that were joined leave their clocks to later ones (tso/order/reachability.h): what an analysis of
//             the whole needs depends on the most that lived together.
// Complexity  O(1) for an event. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

class ThreadsAtOnce {
 public:
  void add(const EventBlock& block) {
    for (const Event& event : block.events) {
      set(event.thread, true);
      if (event.kind() == EventKind::kJoin) {
        set(event.address, false);
      }
    }
  }
  uint64_t most() const { return most_; }

 private:
  void set(uint64_t thread, bool there) {
    if (thread >= there_.size()) {
      if (!there) {
        return;  // it did nothing
      }
      there_.resize(thread + 1, 0);
    }
    now_ += there ? 1 : 0;
    now_ -= there_[thread];
    there_[thread] = there ? 1 : 0;
    most_ = std::max(most_, now_);
  }

  std::vector<uint8_t> there_;
  uint64_t now_ = 0;
  uint64_t most_ = 0;
};

}  // namespace tsomon
