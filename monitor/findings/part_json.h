// Reads what parts of a piece of work have written as JSON (`--part`), of which nothing is taken for granted.
//
// Errors      Malformed is thrown where a value is not there, or is another kind; whoever reads turns it into an Error. It says what was
//             expected.
// Complexity  O(1), or that of a copy. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include <fmt/format.h>

namespace tsomon::of_parts {

struct Malformed {
  std::string expected;
};

using PartJson = nlohmann::ordered_json;

inline const PartJson& member(const PartJson& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || at == object.end()) {
    throw Malformed{name};
  }
  return *at;
}

inline uint64_t number(const PartJson& value, const char* name, uint64_t most = UINT64_MAX) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > most) {
    throw Malformed{fmt::format("a number as {}", name)};
  }
  return value.get<uint64_t>();
}

inline const PartJson& list(const PartJson& value, const char* name) {
  if (!value.is_array()) {
    throw Malformed{fmt::format("a list as {}", name)};
  }
  return value;
}

inline std::string text(const PartJson& value, const char* name) {
  if (!value.is_string()) {
    throw Malformed{fmt::format("a string as {}", name)};
  }
  return value.get<std::string>();
}

inline bool flag(const PartJson& value, const char* name) {
  if (!value.is_boolean()) {
    throw Malformed{fmt::format("true or false as {}", name)};
  }
  return value.get<bool>();
}

}  // namespace tsomon::of_parts
