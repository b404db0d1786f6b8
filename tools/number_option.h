// What is asked of options that are numbers, the same in every subcommand.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>

namespace tsomon {

// Instead of CLI::PositiveNumber, whose message names the largest number there is, digit by digit.
CLI::Validator positive_number();

// "50ms", "2s", "1m", "500us"; a number alone is seconds.
void add_duration(CLI::App& command, const std::string& name, std::chrono::microseconds& time,
                  const std::string& text);

// To be called when all options are there. CLI11 reads -1 for an option without a sign as the
// largest number: refuses it for all of them, whatever else they check.
void refuse_negative_numbers(CLI::App& app);

}  // namespace tsomon
