// Slices of threads, and whether an event lies in one of them.
//
// Complexity  O(log ranges) a query. Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "tso/model/trace.h"

namespace tsomon {

// Events of one thread, by their positions in the trace.
struct EventRange {
  ThreadId thread = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

class EventRanges {
 public:
  explicit EventRanges(std::vector<EventRange> ranges);
  bool contains(const Trace& trace, uint32_t e) const;

 private:
  // By thread and first event; `last` is the greatest of those up to there.
  std::vector<EventRange> ranges_;
};

}  // namespace tsomon
