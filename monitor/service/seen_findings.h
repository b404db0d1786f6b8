// Findings in what `check` and `predict` wrote, as stores and fleets keep them.
//
// Left out    What is suppressed, and what has no fingerprint.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "monitor/service/store.h"

namespace tsomon::service {

// `object`: one result. Of another command: none.
std::vector<SeenFinding> seen_by_check(const nlohmann::ordered_json& object);
std::vector<SeenFinding> seen_by_predict(const nlohmann::ordered_json& object);

}  // namespace tsomon::service
