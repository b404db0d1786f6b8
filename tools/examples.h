// Examples of each subcommand, for --help and the man pages.
//
// Tested: tests/cli/help_examples.case looks whether every option in them is one of the command's.
#pragma once

#include <string_view>

namespace tsomon {

// Lines, each a command with what it is for behind a #; empty: there is no such subcommand.
std::string_view examples_of(std::string_view command);

// In front of them in --help.
inline constexpr std::string_view kExamplesTitle = "\n\nExamples:\n";

}  // namespace tsomon
