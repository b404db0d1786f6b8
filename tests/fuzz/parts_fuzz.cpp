// Any lines are answers of parts, or are refused: those of predictions become one, and groups that were searched are written as they were read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "monitor/judge/searched_groups.h"
#include "monitor/predict/merge_parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tsomon;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::pair<std::string, std::string>> parts;
  SearchedGroups searched;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
    if (object.is_object() && object.contains("searched")) {
      static_cast<void>(searched.add(object["searched"]));
      continue;
    }
    parts.emplace_back(std::to_string(parts.size()), line);
  }
  SearchedGroups again;
  if (!again.add(searched.json()) || again.json() != searched.json()) {
    std::abort();
  }
  const auto merged = merge_prediction_parts(parts);
  if (merged && !merged->object.is_object()) {
    std::abort();
  }
  return 0;
}
