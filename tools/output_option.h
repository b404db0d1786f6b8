// The option `--output text|json`, the same in every subcommand that has results.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "tools/word_option.h"

namespace tsomon {

enum class OutputFormat : uint8_t { kText, kJson };

// `format` keeps its value as the default and must outlive the parsing.
inline CLI::Option* add_output_option(CLI::App& command, OutputFormat& format) {
  static const std::map<std::string, OutputFormat> kNames = {{"text", OutputFormat::kText},
                                                             {"json", OutputFormat::kJson}};
  return command
      .add_option_function<std::string>(
          "--output", [&format](const std::string& name) { format = kNames.at(name); },
          "text for people, json for programs (one object per input and line)")
      ->check(one_of({"text", "json"}))
      ->default_str("text")
      ->option_text("text|json");
}

// For commands that report findings to people.
inline void add_verbose_option(CLI::App& command, bool& verbose) {
  command.add_flag("--verbose", verbose,
                   "Say all that is known of each finding: nothing is folded; stamps, values and "
                   "locks of each\norder, the calls that lead to each access, and what the verdict "
                   "rests on");
}

}  // namespace tsomon
