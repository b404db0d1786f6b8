// Records of the last time, for a recording that goes on for long and is written only when asked.
//
// Bound       Beyond `bytes` the oldest records that only tell of times (switches of threads, AUX
//             without a loss, ends of rounds) are dropped, and what tells of threads that have
//             ended since. The others say what the code is, and what is missing: they stay, and are
//             few.
// Dropped     A LOST record for each CPU stands for its switches, at the time of the last one:
//             until the next switch nobody is known to run there.
// Requires    Events with the fields that pt_record.cpp gives them (IDENTIFIER, TID, TIME, CPU).
// Misses      Which thread ran in the time of the dropped ones: that of the trace which is still
//             there is in general much shorter.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

namespace tsomon::pt_live {

class RecentRecords {
 public:
  explicit RecentRecords(size_t bytes) : bound_(bytes) {}

  // Whole records. Amortised O(their size * log threads).
  void add(std::string_view records);
  // All that is left.
  std::string take();

 private:
  struct Dropped {
    uint64_t count = 0;
    std::string where;  // as the last one had it: thread, time, CPU, event
  };

  void drop(std::string_view record);
  void drop_part();

  size_t bound_;
  std::string lasting_;                      // of the parts that were dropped
  std::map<uint32_t, std::string> threads_;  // likewise, what ends with a thread
  std::map<uint32_t, Dropped> switches_;     // likewise, by CPU
  std::deque<std::string> parts_;
  size_t bytes_ = 0;  // of the parts
};

}  // namespace tsomon::pt_live
