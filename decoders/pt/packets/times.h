// When packets were written, as intervals that are wide enough.
//
// Purpose     Bounds for what a control flow decoder makes of packets: it looks ahead, and a packet
//             of branch outcomes holds branches from before the time packets before it.
// Method      One pass over the packets. TSC and MTC packets are exact; between them CYC packets
//             count on, never past the exact time that follows. A packet's branches come after the
//             packet of branches before it was written, and before it is written itself; it may be
//             written some time after the last of them.
// Memory      56 bytes for each time that differs from the one before.
// Misses      The core's ratio to the TSC is taken from CBR packets; with CYC packets alone a time
//             may be off by what the ratio is off since the last TSC or MTC packet.
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "decoders/pt/packets/input.h"

namespace tsomon::pt {

class Times {
 public:
  Times(std::string_view bytes, const Clock& clock);

  // `before`, `after`: what a decoder had read (offsets) when it went on, and when it was done.
  // Ascending offsets make it O(1) amortised.
  int64_t not_before(size_t before) {
    while (start_ < starts_.size() && starts_[start_].offset < before) {
      ++start_;
    }
    while (start_ != 0 && starts_[start_ - 1].offset >= before) {
      --start_;
    }
    return start_ == 0 ? kTimeMin : starts_[start_ - 1].time;
  }
  int64_t not_after(size_t after) {
    while (end_ < ends_.size() && ends_[end_].offset < after) {
      ++end_;
    }
    while (end_ != 0 && ends_[end_ - 1].offset >= after) {
      --end_;
    }
    return end_ == ends_.size() ? kTimeMax : marks_[ends_[end_].mark].high;
  }
  // The last time that was written before the offset, the first one at or after it.
  int64_t written_before(size_t offset) const;
  int64_t written_after(size_t offset) const;

  // The packets that enable tracing, one after another from where reading began.
  void restart(size_t offset);
  size_t next_enable();  // its offset; past all bytes when there is no other

 private:
  struct Start {
    size_t offset = 0;  // who read past it executes nothing older than `time`
    int64_t time = 0;
  };
  struct Mark {
    size_t offset = 0;  // of a time packet
    int64_t low = 0;    // it was written in [low, high]
    int64_t high = 0;
  };
  struct End {
    size_t offset = 0;  // of a packet of branches
    size_t mark = 0;    // the first one after it
  };
  std::vector<Start> starts_;
  std::vector<Mark> marks_;
  std::vector<End> ends_;
  std::vector<size_t> enables_;
  size_t enable_ = 0;
  size_t start_ = 0;
  size_t end_ = 0;
};

}  // namespace tsomon::pt
