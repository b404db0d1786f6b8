// The time of day, as the store keeps it.
#pragma once

#include <chrono>
#include <cstdint>

namespace tsomon::service {

// Microseconds since 1970.
inline int64_t now_in_microseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tsomon::service
