// The option --part K/N, for every subcommand whose work several processes may share.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tso/support/part_choice.h"

namespace tsomon {

// "2/8"; what is none, or empty, is none.
std::optional<PartChoice> part_named(const std::string& text);

// What it is given is what part_named() reads.
CLI::Option* add_part_option(CLI::App& command, std::string& part, const std::string& text);

}  // namespace tsomon
