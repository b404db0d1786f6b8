// One finding, or one input that was judged, from its JSON object (docs/formats/json.md).
//
// Errors      What is missing in the object is empty in the result.
// Complexity  O(size) times its logarithm. Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "monitor/report/results.h"

namespace tsomon::report {

Finding violation_of(const nlohmann::ordered_json& object, const std::string& property,
                     const std::string& verdict);
// With how often it is there, and whether it is hidden.
Finding counted(Finding finding, const nlohmann::ordered_json& object);
// Not linearizable: `input` is the name of the history.
Finding history_of(const nlohmann::ordered_json& object, const std::string& input);
Finding prediction_of(const nlohmann::ordered_json& object, const char* rule);
// That a run ended in.
Finding deadlock_of(const nlohmann::ordered_json& object);
Finding exploration_of(const nlohmann::ordered_json& object);
// Of an object that says what an input came to. `name`: where it names none itself.
Judged judged_of(const nlohmann::ordered_json& object, const std::string& name);

}  // namespace tsomon::report
