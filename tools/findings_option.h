// `--suppressions`, `--baseline` and `--error-exitcode`: which findings count, and for how much.
//
// The same in every command that judges; the work is done in monitor/findings/finding_filter.h.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/findings/finding_filter.h"
#include "tools/command.h"
#include "tso/model/outcome.h"

namespace tsomon {

struct FindingsChoice {
  std::vector<std::string> suppressions;
  std::vector<std::string> baselines;
  std::optional<int> error_exitcode;

  // To be asked before anything is analysed.
  Result<FindingFilter> filter() const { return FindingFilter::read(suppressions, baselines); }
  // The status to end with, of one of command.h.
  int status(int status) const {
    return status == kExitViolation ? error_exitcode.value_or(kExitViolation) : status;
  }
};

void add_findings_options(CLI::App& command, FindingsChoice& choice);
// The last of them alone.
CLI::Option* add_error_exitcode(CLI::App& command, std::optional<int>& status,
                                const std::string& what);

// A violation that is hidden is none; where something is missing there may be others.
int status_of(Verdict verdict, const HiddenFindings& hidden, bool complete);

// The suppressions that hid nothing, on standard error.
void put_unused(std::string_view tool, const FindingFilter& filter);

}  // namespace tsomon
