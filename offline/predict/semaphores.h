// The counts of the semaphores of a trace.
//
// Purpose     Part of the definition of a reordering: at every point of it a semaphore's initial
//             count, plus the posts so far, less the takes so far, is not negative. That is all: a
//             take is not bound to the post that woke it.
// Counts      A kCount begins a new semaphore at its address. Of one without a kCount the count at
//             first is 0. Where the trace itself goes below 0 somebody who is not in it posts as
//             well, another process say: then nothing is counted, and whatever comes before a take
//             in the trace comes before it in every reordering (hard_edges.h).
// Memory      Some 12 bytes for each post and take.
// Complexity  O(n) to make, O(1) to look up.
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tso/model/trace.h"
#include "tso/support/flat_map.h"
#include "tso/support/none.h"

namespace tsomon::predict {

struct Semaphore {
  struct Step {
    uint32_t event = 0;
    bool takes = false;
  };
  int64_t initial = 0;
  bool counted = true;
  uint32_t begin = kNone;   // its kCount
  std::vector<Step> steps;  // posts and takes, in the order of the trace
};

// The count that the event sets. Windows keep it where others have their interval.
int64_t count_of(const Trace& trace, const Event& event);

class SemaphoreTable {
 public:
  explicit SemaphoreTable(const Trace& trace);

  bool empty() const { return semaphores_.empty(); }
  const std::vector<Semaphore>& all() const { return semaphores_; }
  // That the event posts, takes or begins; kNone: none, or it is not counted.
  uint32_t of_event(uint32_t event) const {
    const uint32_t* const found = of_event_.find(event);
    return found != nullptr && semaphores_[*found].counted ? *found : kNone;
  }

 private:
  std::vector<Semaphore> semaphores_;
  FlatMap<uint32_t, uint32_t> of_event_;
};

}  // namespace tsomon::predict
