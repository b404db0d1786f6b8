#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "monitor/check/deadlock_at_end.h"
#include "monitor/pt_live/pt_record.h"
#include "monitor/record/record.h"
#include "monitor/slices/slice_record.h"
#include "tools/command.h"
#include "tools/findings_option.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/stop_signals.h"

namespace tsomon {
namespace {

constexpr const char* kRecordTool = "tsomon record";

struct RecordOptions {
  std::string output;
  std::vector<std::string> command;
  std::optional<int> error_exitcode;
  bool pt = false;
  pt_live::PtRecordRequest trace;
  std::chrono::microseconds time{50'000};
  std::string control;
};

int run_pt(const RecordOptions& options) {
  pt_live::PtRecordRequest request = options.trace;
  request.command = options.command;
  request.output = options.output.empty() ? "perf.data" : options.output;
  const auto refuse = [](const std::string& message, int status) {
    put_message(kRecordTool, message);
    return status;
  };
  if (request.command.empty() == (request.pid == 0)) {
    return refuse("--pt needs a program after --, or a process (-p PID)", kExitBadInput);
  }
  const auto result = record_pt(request);
  if (!result) {
    return refuse(result.error().message, result.error().kind == ErrorKind::kEnvironment
                                              ? kExitEnvironment
                                              : kExitBadInput);
  }
  put_message(kRecordTool,
              fmt::format("wrote {}, {} bytes of trace", request.output, result->trace_bytes));
  return result->status;
}

// As one would write it in this folder.
std::string short_path(const std::string& file) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string() + "/";
  return !error && file.starts_with(here) ? file.substr(here.size()) : file;
}

int run_slice(const RecordOptions& options) {
  if (!options.command.empty()) {
    put_message(kRecordTool, "a program or a process (-p PID), not both");
    return kExitBadInput;
  }
  const StopSignals stop;
  const std::string output = options.output.empty() ? "capture.tsomon" : options.output;
  const auto end = record_slice_to(options.trace.pid, options.control, options.time, output);
  if (!end) {
    put_message(kRecordTool, end.error().to_string());
    return exit_status_of(end.error());
  }
  put_message(
      kRecordTool,
      fmt::format("wrote {}: {:.3f} ms, threads that took part: {}, units cut: {}", output,
                  static_cast<double>(end->watched.count()) / 1000, end->threads, end->cut_units));
  if (end->threads == 0) {
    put_message(
        kRecordTool,
        "nobody took part: no thread began to run watched code meanwhile; watch for longer");
  }
  return kExitClean;
}

int run_record(const RecordOptions& options) {
  if (options.pt) {
    return run_pt(options);
  }
  if (options.trace.pid != 0) {
    return run_slice(options);
  }
  if (options.command.empty()) {
    put_message(kRecordTool, "a program is needed, after --");
    return kExitBadInput;
  }
  const RecordResult result = record(
      options.command, options.output.empty() ? std::string("capture.tsomon") : options.output);
  const auto tell = [](const std::string& text) { put_message(kRecordTool, text); };
  for (const std::string& file : result.files) {
    tell("wrote " + short_path(file));
  }
  for (const std::string& warning : result.warnings) {
    tell(warning);
  }
  if (!result.problem.empty()) {
    tell(result.problem);
  }
  // Reading it all again pays where a deadlock is likely, or asked for.
  constexpr int kEndedBySignal = 128;  // the status is above
  const bool look = result.status > kEndedBySignal || options.error_exitcode.has_value();
  int status = result.status;
  for (const std::string& file : result.files) {
    if (const auto deadlock = look ? deadlock_at_end(file) : HappenedDeadlock(); deadlock.any()) {
      put_lines(stderr, fmt::format("{}: {}", file, deadlock.text()));
      status = options.error_exitcode.value_or(status);
    }
  }
  return status;
}

}  // namespace

void add_record_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("record",
                         "Run a program built with tsomon-c++ and record what it does; "
                         "with --pt, any program by Intel PT");
  auto options = std::make_shared<RecordOptions>();
  command
      ->add_option("-o", options->output,
                   "The capture to write (capture.tsomon; with --pt perf.data); further processes\n"
                   "add .PID. Replaces a capture, nothing else")
      ->option_text("FILE");
  CLI::Option* error_exitcode = add_error_exitcode(
      *command, options->error_exitcode,
      "The exit status where the recording ended in a deadlock, whatever the program's own is");
  CLI::Option* pt = command->add_flag(
      "--pt", options->pt, "Trace with Intel PT into a perf.data (`tsomon doctor`: intel_pt)");
  error_exitcode->excludes(pt);
  CLI::Option* pid =
      command
          ->add_option(
              "-p,--pid", options->trace.pid,
              "A process that runs already: built with tsomon-c++ --dormant and started with\n"
              "TSOMON_OPTIONS=control=on; with --pt, any")
          ->check(positive_number())
          ->option_text("PID");
  add_duration(*command, "--for", options->time, "Of such a process: how long to record (50ms)");
  command
      ->add_option("--control", options->control,
                   "Of such a process: the folder that control= names")
      ->option_text("FOLDER")
      ->needs(pid)
      ->excludes(pt);
  command
      ->add_flag("--snapshot", options->trace.snapshot,
                 "Of --pt: keep the last part only, write it on SIGUSR2 and at the end")
      ->needs(pt);
  command
      ->add_flag("--per-thread", options->trace.per_thread,
                 "Of --pt: a buffer for each thread that is there at the start")
      ->needs(pt);
  command
      ->add_option("--filter", options->trace.filter,
                   "Of --pt: trace functions of the program with such names only; may be repeated")
      ->allow_extra_args(false)
      ->option_text("PATTERN")
      ->needs(pt);
  command
      ->add_option("--trace-size", options->trace.trace_bytes,
                   "Of --pt: bytes of each buffer (4M), of a snapshot, too")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE")
      ->needs(pt);
  command->add_option("command", options->command, "The program and its arguments, after --")
      ->option_text("CMD...");
  command->positionals_at_end();
  command->footer(
      "Exit status: the program's, or 128+N when signal N ended it; 127 it was not found; 126 it\n"
      "cannot be executed; 125 nothing was recorded; 2 bad usage;\n"
      "4 a capture is not whole, no memory or process is left, the probe refused, or the machine\n"
      "lacks what --pt needs (the message says the remedy).\n"
      "TSOMON_OPTIONS in the environment reaches the probe.");
  command->callback([options, &exit_status] { exit_status = run_record(*options); });
}

}  // namespace tsomon
