// Sorts by `lo` what lies at most EventSource::kReorder events out of place.
//
// Purpose     Text traces with intervals, for what reads events in the order of their time.
// Order       By `lo`, in the order of the input where that is equal. Each thread stays in program
//             order: an event that begins before its predecessor is given that one's `lo`.
// Complexity  Sorted blocks are passed on without a copy, one block late; others are sorted with
//             what is held back.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "monitor/events/event_source.h"

namespace tsomon {

class Reorder {
 public:
  // The next events; `block` is left with any contents. True when there is something to give out.
  bool add(EventBlock& block, EventBlock& out, BlockOrigin& origin);
  // Everything there is; the input has paused or ended.
  bool flush(EventBlock& out, BlockOrigin& origin) { return give(0, out, origin); }
  // Nothing speaks against giving out what is there.
  bool is_plain() const { return plain_ && !held_.events.empty(); }

 private:
  bool in_order(const EventBlock& block);
  void append_raised(const EventBlock& block);
  bool give(size_t keep, EventBlock& out, BlockOrigin& origin);
  void sort(size_t end, EventBlock& out, BlockOrigin& origin);

  EventBlock held_;
  EventBlock rest_;                               // empty; for its memory
  std::vector<uint64_t> lines_;                   // of held_, once anything was out of place
  std::unordered_map<uint64_t, int64_t> raised_;  // of held_, by line: `lo` in the input
  std::vector<int64_t> latest_;                   // start of the last event, by thread
  int64_t high_ = kTimeMin;
  uint64_t count_ = 0;  // events so far
  bool sorted_ = true;  // held_
  bool moved_ = false;  // held_ is not, or has not always been, the lines that came last
  bool plain_ = true;   // every event is at the time of its line
};

}  // namespace tsomon
