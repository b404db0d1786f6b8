// Whether a recording ended while threads waited for one another, without judging it.
//
// Purpose     What `tsomon record` says when the program was ended from outside.
// Bounds      Captures of more than kMostBytesAtEnd are not read: `tsomon check` is.
// Complexity  O(events x log locks); memory of LastWaits and of one block.
// Thread-safety: calls are independent.
#pragma once

#include <cstdint>
#include <string>

#include "monitor/findings/happened_deadlock.h"

namespace tsomon {

inline constexpr uint64_t kMostBytesAtEnd = 64U << 20;

// Also none where the capture cannot be read or is not whole.
HappenedDeadlock deadlock_at_end(const std::string& path);

}  // namespace tsomon
