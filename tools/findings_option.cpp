#include "tools/findings_option.h"

#include "tools/output.h"

namespace tsomon {

void add_findings_options(CLI::App& command, FindingsChoice& choice) {
  command
      .add_option("--suppressions", choice.suppressions,
                  "Findings that are known: lines function:PATTERN, file:PATTERN, unit:PATTERN, "
                  "module:PATTERN or\nfingerprint:PATTERN. They are counted, not shown, and do not "
                  "count for the exit status. May be repeated")
      ->allow_extra_args(false)
      ->option_text("FILE");
  command
      .add_option("--baseline", choice.baselines,
                  "Likewise the findings in FILE, which --output json of any command wrote. May be "
                  "repeated")
      ->allow_extra_args(false)
      ->option_text("FILE");
  add_error_exitcode(command, choice.error_exitcode,
                     "The exit status where something is found that is not suppressed (1)");
}

CLI::Option* add_error_exitcode(CLI::App& command, std::optional<int>& status,
                                const std::string& what) {
  return command.add_option("--error-exitcode", status, what)
      ->check(CLI::Range(1, 255))
      ->option_text("N");
}

int status_of(Verdict verdict, const HiddenFindings& hidden, bool complete) {
  switch (verdict) {
    case Verdict::kClean:
      return kExitClean;
    case Verdict::kPossible:
    case Verdict::kDefinite:
      return !hidden.all() ? kExitViolation : complete ? kExitClean : kExitInconclusive;
    case Verdict::kInconclusive:
      break;
  }
  return kExitInconclusive;
}

void put_unused(std::string_view tool, const FindingFilter& filter) {
  for (const std::string& line : filter.unused()) {
    put_message(tool, line);
  }
}

}  // namespace tsomon
