#include "monitor/report/json_fields.h"

namespace tsomon::report {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

uint64_t number_of(const Json& value) {
  // What was made here and not parsed may be signed.
  const bool is_natural =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  return is_natural ? value.get<uint64_t>() : 0;
}

uint64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() ? number_of(*found) : 0;
}

double real_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

bool flag_of(const Json& object, const char* key, bool otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

const Json& object_of(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kNone;
}

const Json& array_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& part : array) {
    if (part.is_string()) {
      texts.push_back(part.get<std::string>());
    }
  }
  return texts;
}

std::string value_text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_structured() || found->is_null() ? std::string()
         : found->is_string() ? found->get<std::string>()
                              : found->dump();
}

}  // namespace tsomon::report
