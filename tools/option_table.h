// The subcommands and options of the program, as man pages and completions are made of them.
//
// Purpose     One table for all: what CLI11 was told, which makes the help, too.
// Thread-safety: pure function.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tsomon {

struct OptionEntry {
  std::vector<std::string> names;  // "-h", "--help"; none: positional
  std::string value;               // as the help names it; empty: it takes none
  std::vector<std::string> choices;
  std::string description;  // one line
};

struct CommandEntry {
  std::string name;
  std::string description;  // one line
  std::string footer;       // exit status and what else the help says at its end
  std::vector<OptionEntry> options;
};

std::vector<CommandEntry> commands_of(const CLI::App& app);

}  // namespace tsomon
