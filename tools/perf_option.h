// The options for recordings of perf, the same in every subcommand that reads them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tsomon {

struct PerfChoice {
  std::string sysroot;
  std::vector<std::string> units;
};

// `choice` must outlive the parsing.
inline void add_perf_options(CLI::App& command, PerfChoice& choice) {
  command
      .add_option("--sysroot", choice.sysroot,
                  "Of perf.data: the folder with the recorded machine's files")
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  command
      .add_option(
          "--unit", choice.units,
          "Of Intel PT: what is a unit: calls of functions (shell pattern), usdt:PROVIDER:A..B\n"
          "or ptwrite:VALUE..VALUE[:LABEL]; may be repeated")
      ->allow_extra_args(false)
      ->option_text("UNIT");
}

}  // namespace tsomon
