#include "monitor/findings/result_json.h"

#include <charconv>
#include <optional>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

// The number in "line 12" or "byte 4096", after the word.
std::optional<uint64_t> number_after(std::string_view where, std::string_view word) {
  if (where.substr(0, word.size()) != word) {
    return std::nullopt;
  }
  const std::string_view digits = where.substr(word.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number)
                                                                      : std::nullopt;
}

}  // namespace

std::string json_line(nlohmann::ordered_json object, std::string_view tool) {
  object["schema"] = kJsonSchema;
  object["tool"] = tool;
  return json_text(object);
}

void JsonEntries::add(const nlohmann::ordered_json& entry) {
  text_ += (text_.empty() ? "" : ",") + json_text(entry);
}

void put_json_line(const ListedJson& json, std::string_view tool,
                   const std::function<void(std::string_view)>& put) {
  const std::string line = json_line(json.object, tool);
  std::string_view rest = line;
  for (const auto& [name, list] : json.lists) {
    // Within a string the quotation mark would be escaped.
    const std::string member = ",\"" + name + "\":[";
    const size_t at = rest.find(member + "]");
    if (at != std::string_view::npos) {
      put(rest.substr(0, at + member.size()));
      put(list.text());
      rest.remove_prefix(at + member.size());
    }
  }
  put(rest);
}

std::string json_text(const nlohmann::ordered_json& value) {
  return printable_json(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::ordered_json error_json(const Error& error) {
  nlohmann::ordered_json object = {{"message", error.message}};
  if (const auto line = number_after(error.where, "line ")) {
    object["line"] = *line;
  } else if (const auto byte = number_after(error.where, "byte ")) {
    object["offset"] = *byte;
  } else if (!error.where.empty()) {
    object["where"] = error.where;
  }
  // Messages about what an input should look like have this form.
  constexpr std::string_view kExpected = "expected ";
  constexpr std::string_view kFound = ", found ";
  const size_t found = error.message.find(kFound);
  if (error.message.rfind(kExpected, 0) == 0 && found != std::string::npos) {
    object["expected"] = error.message.substr(kExpected.size(), found - kExpected.size());
    object["found"] = error.message.substr(found + kFound.size());
  }
  return object;
}

}  // namespace tsomon
