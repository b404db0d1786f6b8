// The answers of parts (`tsomon predict --part`), as the one answer that a single process would have given.
//
// Same        Findings, witnesses, verdict and counts are those of one process that had the same windows, unless a bound was met.
//             A finding is reported of the first window that has it.
// Trust       None: what parts say is checked; sizes are those of the texts.
// Errors      kMalformed: a text is no answer of a part; with its name. kUsage: the parts are not those of one prediction,
//             or one is missing.
// Complexity  O(n log n) in what they found and asked about. Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tso/support/result.h"

namespace tsomon {

struct MergedPrediction {
  nlohmann::ordered_json object;  // as `tsomon predict --output json` writes it
  bool found = false;
  uint64_t shown = 0;  // findings that are not suppressed
};

// Of each part its name, for errors, and its text, in any order.
Result<MergedPrediction> merge_prediction_parts(
    const std::vector<std::pair<std::string, std::string>>& parts);

}  // namespace tsomon
