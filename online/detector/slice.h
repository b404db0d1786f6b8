// A slice of the input out of the history.
//
// Complexity  That of EventHistory::slice().
// Thread-safety: a pure function of its arguments.
#pragma once

#include <cstdint>

#include "online/detector/detector.h"
#include "online/stream/history.h"

namespace tsomon {

// See Detector::slice(). `end`: index behind the latest event.
DetectedSlice slice_of(const EventHistory& history, uint64_t end, uint64_t first, uint64_t last,
                       uint64_t around, bool all_behind);

}  // namespace tsomon
