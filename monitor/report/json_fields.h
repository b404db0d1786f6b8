// Fields of JSON objects that come from outside.
//
// Errors      A field that is missing, or of another type than it should be, is as if it were empty.
// Complexity  O(size of the field). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tsomon::report {

std::string text_of(const nlohmann::ordered_json& object, const char* key);
uint64_t number_of(const nlohmann::ordered_json& value);
uint64_t number_of(const nlohmann::ordered_json& object, const char* key);
double real_of(const nlohmann::ordered_json& object, const char* key);
bool flag_of(const nlohmann::ordered_json& object, const char* key, bool otherwise);
const nlohmann::ordered_json& object_of(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& array_of(const nlohmann::ordered_json& object, const char* key);
// The texts among the parts.
std::vector<std::string> texts_of(const nlohmann::ordered_json& array);
// Of a text, a number or a truth value, as text.
std::string value_text(const nlohmann::ordered_json& object, const char* key);

// Calls function(part) for the objects among the parts.
template <typename Function>
void for_each_object(const nlohmann::ordered_json& array, const Function& function) {
  for (const nlohmann::ordered_json& part : array) {
    if (part.is_object()) {
      function(part);
    }
  }
}

}  // namespace tsomon::report
