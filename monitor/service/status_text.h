// A status (status_json()) for people.
//
// Names       Are made printable. What is missing, or of another type, is shown as if it were 0: an older or a newer monitor may
//             have written it.
// Width       In columns; 0: any. Lines that are longer are cut.
// Complexity  O(size). Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tsomon::service {

// All that is known, a paragraph for each target.
std::string status_text(const nlohmann::ordered_json& status);
// A line for each target, below three of the whole: what happens now.
std::vector<std::string> top_lines(const nlohmann::ordered_json& status, size_t width);

}  // namespace tsomon::service
