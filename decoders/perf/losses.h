// The times in which samples of a perf.data are missing.
//
// LOST        says how many records found no room in a buffer, when there is room again: they are
//             missing since the record before it in that buffer. Which buffer is known where each
//             belongs to a CPU (ID_INDEX says so); else the time begins with the recording.
// LOST_SAMPLES  is perf's count at the end; what LOST does not explain is missing at any time.
// THROTTLE    an event was switched off, until UNTHROTTLE.
// Complexity  O(1) for each record; finish() sorts.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "decoders/perf/record.h"

namespace tsomon::perf {

class Losses {
 public:
  // In the order of time. `matters`: the events whose occurrences count, by attribute.
  void see(const Record& record, const AttributeTable& attributes,
           const std::vector<bool>& matters);
  void finish();

  bool any() const { return !windows_.empty(); }
  uint64_t lost() const { return lost_ > lost_samples_ ? lost_ : lost_samples_; }
  uint64_t throttled() const { return throttled_; }
  // Whether something is missing at some time from `begin` to `end`. After finish().
  bool overlap(uint64_t begin, uint64_t end) const;

 private:
  bool per_cpu_ = false;
  bool one_buffer_per_thread_ = false;
  std::map<uint32_t, uint64_t> latest_;                 // by CPU
  std::map<uint64_t, uint64_t> off_since_;              // by event id
  std::vector<std::pair<uint64_t, uint64_t>> windows_;  // closed intervals; at the end disjoint
  uint64_t lost_ = 0;
  uint64_t lost_samples_ = 0;
  uint64_t throttled_ = 0;
};

}  // namespace tsomon::perf
