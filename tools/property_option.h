// The option --property, for every subcommand that judges: one question or several.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/word_option.h"

namespace tsomon {

// `names` holds the default; `allowed` lists what may be asked.
inline void add_property_option(CLI::App& command, std::vector<std::string>& names,
                                const std::vector<std::string>& allowed, const std::string& what) {
  command
      .add_option("--property", names, what + "; several separated by commas: a verdict for each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of(allowed))
      ->option_text(fmt::format("{} [{}]", fmt::join(allowed, "|"), fmt::join(names, ",")));
}

// The questions in their order, without repetitions.
inline std::vector<std::string> each_once(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) {
      once.push_back(name);
    }
  }
  return once;
}

}  // namespace tsomon
