// Options whose values are words of a fixed set, the same in every subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tsomon {

// Refuses what is none of these words; the message lists them, and names the one that was meant
// where one is near (monitor/probe/nearest.h).
CLI::Validator one_of(std::vector<std::string> words);

// "\nDid you mean --html?"; empty: none of those offered is near.
std::string meant_text(const std::string& written, const std::vector<std::string>& offered);

}  // namespace tsomon
