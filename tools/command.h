// What the subcommands of `tsomon` share.
//
// Every subcommand is one source file tools/NAME_command.cpp with one function, declared here and
// called in tsomon.cpp. It adds its options to `app` and sets a callback that does the work and
// stores the exit status. Work is done in the libraries; a subcommand only translates options,
// prints results on standard output and everything else on standard error.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "tso/support/result.h"

namespace tsomon {

// Exit statuses of every subcommand that judges. `record` passes its child's status through.
inline constexpr int kExitClean = 0;         // nothing found
inline constexpr int kExitViolation = 1;     // a violation was found
inline constexpr int kExitBadInput = 2;      // bad usage; an input is unreadable or malformed
inline constexpr int kExitInconclusive = 3;  // events were lost or a bound was hit
inline constexpr int kExitEnvironment = 4;   // permission, kernel feature or hardware missing

// Two inputs have these statuses; the program ends with the worse. An input that was not judged
// outranks what was found in the others, as with grep.
inline int worse(int a, int b) {
  constexpr int kOrder[] = {kExitClean, kExitInconclusive, kExitViolation, kExitBadInput,
                            kExitEnvironment};
  const auto rank = [&](int status) {
    return std::find(std::begin(kOrder), std::end(kOrder), status) - std::begin(kOrder);
  };
  return rank(a) < rank(b) ? b : a;
}

// The machine lacks something, or the input is not as it should be.
inline int exit_status_of(const Error& error) {
  return error.kind == ErrorKind::kEnvironment ? kExitEnvironment : kExitBadInput;
}

void add_attach_command(CLI::App& app, int& exit_status);
void add_check_command(CLI::App& app, int& exit_status);
void add_completion_command(CLI::App& app, int& exit_status);
void add_critical_races_command(CLI::App& app, int& exit_status);
void add_doctor_command(CLI::App& app, int& exit_status);
void add_explain_command(CLI::App& app, int& exit_status);
void add_explore_command(CLI::App& app, int& exit_status);
void add_findings_command(CLI::App& app, int& exit_status);
void add_fleet_command(CLI::App& app, int& exit_status);
void add_generate_command(CLI::App& app, int& exit_status);
void add_litmus_command(CLI::App& app, int& exit_status);
void add_man_command(CLI::App& app, int& exit_status);
void add_monitor_command(CLI::App& app, int& exit_status);
void add_pack_command(CLI::App& app, int& exit_status);
void add_predict_command(CLI::App& app, int& exit_status);
void add_record_command(CLI::App& app, int& exit_status);
void add_report_command(CLI::App& app, int& exit_status);
void add_run_command(CLI::App& app, int& exit_status);
void add_script_command(CLI::App& app, int& exit_status);
void add_show_command(CLI::App& app, int& exit_status);
void add_status_command(CLI::App& app, int& exit_status);
void add_submit_command(CLI::App& app, int& exit_status);
void add_top_command(CLI::App& app, int& exit_status);
void add_worker_command(CLI::App& app, int& exit_status);

}  // namespace tsomon
