#include "tools/number_option.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "tso/support/quantity.h"

namespace tsomon {

CLI::Validator positive_number() {
  return {[](const std::string& text) {
            double value = 0;
            const bool positive =
                CLI::detail::lexical_cast(text, value) && value > 0 && std::isfinite(value);
            return positive ? std::string() : fmt::format("expected more than 0, found {}", text);
          },
          "POSITIVE"};
}

void add_duration(CLI::App& command, const std::string& name, std::chrono::microseconds& time,
                  const std::string& text) {
  const CLI::callback_t read = [&time](const CLI::results_t& given) {
    const auto value = parse_duration(given[0]);
    time = value.value_or(time);
    return value.has_value();
  };
  command.add_option(name, read, text)
      ->type_name("TIME")
      ->check(CLI::Validator(
          [](const std::string& given) {
            return parse_duration(given)
                       ? std::string()
                       : fmt::format("expected a time as 50ms, 2s or 1m, found {}", given);
          },
          ""));
}

void refuse_negative_numbers(CLI::App& app) {
  // A transformation comes before all checks and other transformations.
  const auto negative = [](std::string& text) {
    return text.find('-') == std::string::npos
               ? std::string()
               : fmt::format("expected a number from 0, found {}", text);
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name().rfind("UINT", 0) == 0) {
      option->transform(CLI::Validator(negative, ""));
    }
  }
  for (CLI::App* command : app.get_subcommands({})) {
    refuse_negative_numbers(*command);
  }
}

}  // namespace tsomon
