// Records of the last time, for a recording that goes on for long and is written only when asked.
//
// Bound       Beyond `bytes` the oldest records that only tell of times (switches of threads, AUX)
//             are dropped. The others say what the code is: they stay, and are few.
// Misses      Which thread ran in the time of the dropped ones: that of the trace which is still
//             there is in general much shorter.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace tsomon::pt_live {

class RecentRecords {
 public:
  explicit RecentRecords(size_t bytes) : bound_(bytes) {}

  // Whole records. Amortised O(their size).
  void add(std::string_view records);
  // All that is left, as it came.
  std::string take();

 private:
  size_t bound_;
  std::string lasting_;  // of the parts that were dropped
  std::deque<std::string> parts_;
  size_t bytes_ = 0;  // of the parts
};

}  // namespace tsomon::pt_live
