// The options for recordings of perf, the same in every subcommand that reads them.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "monitor/events/event_source.h"
#include "tools/word_option.h"

namespace tsomon {

// `choice` must outlive the parsing.
inline void add_perf_options(CLI::App& command, PerfOptions& choice) {
  command
      .add_option(
          "--unit", choice.units,
          "Of Intel PT: what is a unit: calls of functions (shell pattern), usdt:PROVIDER:A..B\n"
          "or ptwrite:VALUE..VALUE[:LABEL]; may be repeated")
      ->allow_extra_args(false)
      ->option_text("UNIT");
  command
      .add_option_function<std::vector<std::string>>(
          "--pt-assume",
          [&choice](const std::vector<std::string>& names) {
            const auto has = [&](const char* name) {
              return std::find(names.begin(), names.end(), name) != names.end();
            };
            choice.assume_memory = has("memory");
            choice.assume_frames = has("frames");
          },
          "Of Intel PT: what may be relied upon to find more addresses. memory: processes with "
          "one\ntraced thread have no other, and share no memory that is written; frames: what was "
          "called\nbefore the trace has given no pointers to its locals away. Separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of({"memory", "frames"}))
      ->option_text("LIST");
  command.add_flag("--pt-quick", choice.quick,
                   "Of Intel PT: carry registers alone, forwards: faster, finds fewer addresses");
}

}  // namespace tsomon
