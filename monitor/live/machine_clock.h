// This machine's clock, measured by the monitor itself (monitor/probe/clock_meter.h).
//
// Thread-safety: one call at a time. It makes a thread, and moves its own from processor to processor and back.
#pragma once

#include <cstdint>
#include <optional>

#include "decoders/capture/clock_margin.h"

namespace tsomon {

// How far the processors' counters may differ, measured now, again for up to half a second when that is more than `allowed`;
// ClockMargin::kMost: nobody knows, and times of different threads order nothing.
int64_t measure_margin(int64_t allowed = capture::ClockMargin::kMost);

// For LiveReader::finish(): the same for up to some seconds, until a stop (tso/support/work.h). Of a program whose stamps a test
// skews (TSOMON_OPTIONS) nothing: this machine's say nothing of them.
std::optional<capture::ClockEntry> measure_open_clock(int64_t allowed);

}  // namespace tsomon
