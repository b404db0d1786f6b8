// PTWRITE values straight from the packets: for traces without branches, where there is no control
// flow to follow, and for whoever wants only the values.
//
// Time        Each value was written in [lo, hi]: between the times before it and after it.
// Address     Of the instruction, where the trace was made with it (fup_on_ptw); else 0.
// Loss        `gap`: before this value packets were lost, or bytes that are none were skipped up to
//             the next PSB.
// Cost        One pass, no control flow. Memory: the values between two times.
// Thread-safety: none; distinct readers are independent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "decoders/pt/packets/packet_clock.h"
#include "decoders/pt/packets/packets.h"

namespace tsomon::pt {

struct PtwriteValue {
  uint64_t value = 0;
  uint64_t ip = 0;
  int64_t lo = kTimeMin;
  int64_t hi = kTimeMax;
  uint8_t size = 0;  // bytes: 4 or 8
  bool gap = false;
};

class PtwriteReader {
 public:
  PtwriteReader(std::string_view bytes, const Clock& clock);

  // Replaces the contents of `values` by the next ones, at least one; false at the end.
  bool next(std::vector<PtwriteValue>& values);
  bool lost() const { return lost_; }  // anything so far

 private:
  std::string_view bytes_;
  PacketReader reader_;
  PacketClock clock_;
  LastAddress address_;
  int64_t low_ = kTimeMin;
  bool gap_ = false;
  bool lost_ = false;
  bool synchronised_ = false;
};

}  // namespace tsomon::pt
