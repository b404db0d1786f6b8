#include "tools/output.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/findings/result_json.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

// Checked once, when tsomon ends.
void put(FILE* file, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

}  // namespace

void put_lines(FILE* file, std::string_view lines) { put(file, printable_lines(lines)); }

void put_json(FILE* file, const nlohmann::ordered_json& object, std::string_view tool) {
  put(file, json_line(object, tool) + "\n");
}

void put_listed_json(FILE* file, const ListedJson& json, std::string_view tool) {
  put_json_line(json, tool, [file](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), file);
  });
  put(file, "\n");
}

void put_message(std::string_view tool, std::string_view text) {
  put(stderr, printable(tool) + (tool.empty() ? "" : ": ") + printable(text) + "\n");
}

void put_messages(std::string_view tool, std::string_view input,
                  const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    put_message(tool, fmt::format("{}: {}", input, text));
  }
}

void put_error_json(const std::string& file, const std::string& property, const Error& error,
                    std::string_view tool) {
  nlohmann::ordered_json object = {{"file", file}};
  if (!property.empty()) {
    object.update({{"events", 0}, {"threads", 0}, {"units", 0}, {"property", property}});
  }
  object["verdict"] = nullptr;
  object["complete"] = false;
  object["error"] = error_json(error);
  put_json(stdout, object, tool);
}

}  // namespace tsomon
