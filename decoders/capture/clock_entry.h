// A chunk of a capture, of type kClockChunk: measurements of the processors' time-stamp counters,
// made again and again (monitor/probe/clock_meter.h). Since version 3.1 of the format.
//
// Header only, no dependencies: it is compiled into monitored programs.
#pragma once

#include <cstdint>

#include "decoders/capture/format.h"

namespace tsomon::capture {

inline constexpr ChunkType kClockChunk{10};  // ClockEntry, repeated

// Between two measurements the larger margin of both holds.
inline constexpr uint64_t kNoMargin = ~uint64_t{0};
struct ClockEntry {
  uint64_t since = 0;  // stamps before and after the measurement
  uint64_t until = 0;
  // Any two counters differ by so many cycles at most; kNoMargin: what was measured contradicts
  // itself.
  uint64_t margin = kNoMargin;
  // By how many cycles at most, so far, a stamp was smaller than one that had come before it: in
  // its thread, under its lock, or by the start or end of a thread. More than the margin
  // contradicts it.
  uint64_t backwards = 0;
  // By how many cycles at most a message of the measurement was read before it was sent.
  uint64_t early = 0;
  uint32_t processors = 0;
  uint32_t exchanges = 0;  // messages there and back, of the pair of processors with the fewest
};
static_assert(sizeof(ClockEntry) == 48);

// What is judged before later measurements are known allows for this margin, where the first one
// asks for `first`: they are as wide as messages take then, and seldom as narrow as that one when
// processors are busy.
constexpr uint64_t allowed_margin(uint64_t first) {
  constexpr uint64_t kMessage = 256;  // cycles, to another processor and back where that is fast
  const uint64_t more = first / 2 > kMessage ? first / 2 : kMessage;
  return first < kNoMargin - more ? first + more : kNoMargin;
}

}  // namespace tsomon::capture
