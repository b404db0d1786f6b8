#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/record.h"
#include "tools/command.h"

namespace tsomon {
namespace {

struct RecordOptions {
  std::string output = "capture.tsomon";
  std::vector<std::string> command;
};

int run_record(const RecordOptions& options) {
  const RecordResult result = record(options.command, options.output);
  if (!result.problem.empty()) {
    fmt::print(stderr, "tsomon record: {}\n", result.problem);
  }
  for (const std::string& file : result.files) {
    fmt::print(stderr, "tsomon record: wrote {}\n", file);
  }
  return result.status;
}

}  // namespace

void add_record_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("record", "Run a program built with tsomon-c++ and record what it does");
  auto options = std::make_shared<RecordOptions>();
  command->add_option("-o", options->output, "The capture to write; further processes add .PID")
      ->capture_default_str()
      ->option_text("FILE");
  command->add_option("command", options->command, "The program and its arguments, after --")
      ->required()
      ->option_text("CMD...");
  command->positionals_at_end();
  command->footer(
      "Exit status: the program's, or 128+N when signal N ended it; 127 it was not found; 126 it\n"
      "cannot be executed; 125 nothing was recorded; 2 bad usage.\n"
      "TSOMON_OPTIONS in the environment reaches the probe.");
  command->callback([options, &exit_status] { exit_status = run_record(*options); });
}

}  // namespace tsomon
