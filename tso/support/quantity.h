// Times and shares as people write them: in options and in configuration files.
//
// Complexity  O(length). Thread-safety: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tsomon {

// "50ms", "2s", "1m", "500us", "1h", "30d"; a number alone is seconds. Nothing: it is none, less than a microsecond, or more than
// 10^14 of them (three years).
std::optional<std::chrono::microseconds> parse_duration(const std::string& text);

// "1%" or "0.01": more than 0, at most 1.
std::optional<double> parse_share(const std::string& text);

}  // namespace tsomon
