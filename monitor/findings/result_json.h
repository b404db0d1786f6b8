// What all JSON results have in common.
//
// Purpose     One object on one line, with `schema` and `tool`; the rest is in
//             docs/formats/json.md.
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tso/support/result.h"

namespace tsomon {

inline constexpr int kJsonSchema = 1;

// One line without its end. Adds `schema` and `tool`, "tsomon check". Names come from outside:
// bytes that are not UTF-8 are replaced, and no control character is left as it is.
std::string json_line(nlohmann::ordered_json object, std::string_view tool);
// An array that is text already: thousands of entries take more than ten times the memory as values.
class JsonEntries {
 public:
  void add(const nlohmann::ordered_json& entry);
  const std::string& text() const { return text_; }  // without brackets

 private:
  std::string text_;
};

// `object` has an empty array for each of the lists, under its name, which no other member has and
// which is not the first.
struct ListedJson {
  nlohmann::ordered_json object;
  std::vector<std::pair<std::string, JsonEntries>> lists;
};
// The line of json_line() in pieces, with the lists in their places.
void put_json_line(const ListedJson& json, std::string_view tool,
                   const std::function<void(std::string_view)>& put);
// A value on one line, in valid UTF-8 and without control characters, whatever its strings hold.
std::string json_text(const nlohmann::ordered_json& value);

// Why an input was not judged: `message`, and where that is known `line`, `byte` or `where`,
// `expected` and `found`.
nlohmann::ordered_json error_json(const Error& error);

}  // namespace tsomon
