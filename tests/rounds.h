// How many rounds random tests take.
//
// All of them belong to the full run of the tests. The short one takes a sixth, but no fewer than
// with sanitizers: those are always enough for what a test asks of its rounds. TSOMON_ROUNDS is the
// share in percent; 16 without it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

inline int rounds([[maybe_unused]] int with_sanitizers, [[maybe_unused]] int all) {
#if defined(TSOMON_SANITIZED) || !defined(NDEBUG)
  return with_sanitizers;
#else
  const char* const share = std::getenv("TSOMON_ROUNDS");
  const int64_t percent = share == nullptr ? 16 : std::clamp(std::atoi(share), 1, 1000);
  return static_cast<int>(std::max<int64_t>(with_sanitizers, all * percent / 100));
#endif
}
