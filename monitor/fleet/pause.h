// A while in which a stop is seen.
//
// Thread-safety: that of `stopped`.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tsomon::fleet {

// Of whoever waits for a server: what it has left once a stop was asked for, and the time between looks whether it was.
inline constexpr std::chrono::milliseconds kAfterStop{500};
inline constexpr std::chrono::milliseconds kLook{50};

inline void pause(std::chrono::milliseconds time, const std::function<bool()>& stopped) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!stopped() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace tsomon::fleet
