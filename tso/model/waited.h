// What a kRequest of a recording waits for: the record's word behind the stamps, and the value
// written of its event. Without one it is a lock, taken exclusively.
#pragma once

#include <cstdint>

namespace tsomon {

enum class Waited : uint64_t { kLock = 0, kReadLock = 1, kThread = 2, kSemaphore = 3 };

}  // namespace tsomon
