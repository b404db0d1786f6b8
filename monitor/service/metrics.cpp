#include "monitor/service/metrics.h"

#include <fmt/format.h>

#include "tso/support/printable.h"

namespace tsomon::service {
namespace {

std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) {
    escaped += c == '\\' || c == '"' ? "\\" : "";
    escaped += c;
  }
  return escaped;
}

}  // namespace

void MetricsText::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                       type == Type::kCounter ? "counter" : "gauge");
}

void MetricsText::sample(std::initializer_list<Label> labels, double value) {
  std::string list;
  for (const auto& [name, text] : labels) {
    list += fmt::format("{}{}=\"{}\"", list.empty() ? "" : ",", name, label_value(text));
  }
  text_ += fmt::format("{}{} {}\n", name_, list.empty() ? "" : fmt::format("{{{}}}", list), value);
}

}  // namespace tsomon::service
