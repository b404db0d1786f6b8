#include "tools/number_option.h"

#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>

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
  const std::map<std::string, double> units = {
      {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}};
  const CLI::callback_t read = [&time, units](const CLI::results_t& given) {
    double value = 0;
    const size_t end = given[0].find_first_not_of("0123456789.");
    const auto unit = units.find(end == std::string::npos ? "s" : given[0].substr(end));
    constexpr double kMost = 1e13;
    if (unit == units.end() || !CLI::detail::lexical_cast(given[0].substr(0, end), value) ||
        !(value * unit->second >= 1) || value * unit->second > kMost) {
      return false;
    }
    time = std::chrono::microseconds(static_cast<int64_t>(value * unit->second));
    return true;
  };
  command.add_option(name, read, text)
      ->type_name("TIME")
      ->check(CLI::Validator(
          [read](const std::string& given) {
            return read({given})
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
