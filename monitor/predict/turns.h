// The order of a witness, by whose turn it is: events of a thread that follow each other.
//
// Complexity  O(length of the witness). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "monitor/predict/predict.h"

namespace tsomon {

// "T1 #0..#4, T2 #5..#9": the last turns. Commits that come late are turns.
std::string schedule_text(const Prediction& prediction, const std::vector<uint32_t>& witness);
// The same as `turns`, and how many came before these as `turns_before`, for pictures of the order.
void add_turns(const Prediction& prediction, const std::vector<uint32_t>& witness,
               nlohmann::ordered_json* entry);

}  // namespace tsomon
