// Asks the monitor that keeps a store what it is doing.
//
// Bounds      kClientPatience in all, kMostStatusBytes of answer.
// Whose       The answer must come from this user or from root; root believes everybody.
// Errors      kUnreadable: no monitor keeps the store. kEnvironment: it does not answer, in time or at all, or another user does.
//             kMalformed: what it answers is no status.
// Thread-safety: pure function.
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tso/support/result.h"

namespace tsomon::service {

inline constexpr std::chrono::milliseconds kClientPatience{5000};
inline constexpr size_t kMostStatusBytes = size_t{16} << 20;

// `store`: its folder.
Result<nlohmann::ordered_json> ask_status(const std::string& store);

}  // namespace tsomon::service
