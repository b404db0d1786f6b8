// `tsomon run`: a program with the detector beside it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "monitor/judge/check.h"
#include "monitor/live/run.h"
#include "monitor/record/record.h"
#include "monitor/slices/sampling.h"
#include "tools/command.h"
#include "tools/findings_option.h"
#include "tools/flight_option.h"
#include "tools/number_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/predict_option.h"
#include "tools/property_option.h"
#include "tools/relation_option.h"
#include "tools/slice_report.h"
#include "tools/stop_signals.h"
#include "tools/watch_report.h"
#include "tso/support/quantity.h"

namespace tsomon {
namespace {

constexpr const char* kRunTool = "tsomon run";

// What is larger is rather an array than an object.
constexpr uint64_t kObjectBytes = 65536;

// Of what has run on a processor: more than twice the entries of any x86-64 processor's buffer.
// Without a bound a thread that goes on for long without a fence settles nothing
// (docs/design/detection.md).
constexpr uint32_t kRunStoreBuffer = 256;

struct RunArguments {
  RunArguments() { relation.store_buffer = kRunStoreBuffer; }
  std::vector<std::string> command;
  OutputFormat output = OutputFormat::kText;
  std::vector<std::string> properties = {"serializability"};
  std::string sets = "auto";
  RelationChoice relation;
  uint32_t interval = RunOptions().round_milliseconds;
  std::string save;
  std::string report;
  FlightChoice flight;
  PredictChoice predict;
  FindingsChoice findings;
  bool quiet = false;
  bool verbose = false;
  SamplingOptions sampling;
  std::string share = "100%";
  std::string overhead;
  std::string trigger;
};

RunOptions run_options(const RunArguments& options) {
  RunOptions result;
  result.round_milliseconds = options.interval;
  result.save = options.save;
  const SetChoice sets = *set_choice(options.sets);
  result.watches = watches_of(options.properties, options.relation.relation(), sets);
  const bool about_sets = std::any_of(
      result.watches.begin(), result.watches.end(),
      [](const WatchOptions& watch) { return watch.property() == Property::kAtomicSets; });
  // Objects have names in what is predicted.
  const bool objects = (about_sets && sets == SetChoice::kObjects) || options.predict.predict;
  result.object_bytes = objects ? kObjectBytes : 0;
  return result;
}

CLI::Validator is_share() {
  return {[](const std::string& text) {
            return parse_share(text)
                       ? std::string()
                       : fmt::format("expected a share as 1% or 0.01, found {}", text);
          },
          ""};
}

int run_sampling(const RunArguments& options, FindingFilter& filter, const ReportOutput& output) {
  SamplingOptions asked = options.sampling;
  asked.plan.share = *parse_share(options.share);
  asked.plan.max_overhead = options.overhead.empty() ? 0 : *parse_share(options.overhead);
  asked.plan.seed = static_cast<uint64_t>(::getpid());
  if (!options.trigger.empty()) {
    asked.trigger = *parse_trigger(options.trigger);
  }
  asked.questions =
      questions_of(options.properties, options.relation.relation(), *set_choice(options.sets));
  const StopSignals stop;
  return watch_and_report(asked, filter, options.findings, output);
}

int run_run(const RunArguments& options) {
  const auto tell = [](const std::string& problem) { put_message(kRunTool, problem); };
  auto filter = options.findings.filter();
  if (!filter) {
    tell(filter.error().to_string());
    return kExitBadInput;
  }
  ReportOutput output{options.output, stdout, kRunTool};
  if (!options.report.empty()) {
    output.file = std::fopen(options.report.c_str(), "we");  // the program does not inherit it
    if (output.file == nullptr) {
      tell(fmt::format("{}: cannot be written: {}", options.report, std::strerror(errno)));
      return kExitEnvironment;
    }
  }
  output.shape = text_shape(output.file, options.verbose);
  if (options.sampling.pid != 0) {
    const int status = run_sampling(options, *filter, output);
    const bool whole = output.file == stdout || std::fclose(output.file) == 0;
    return status == kExitClean && !whole ? kExitEnvironment : status;
  }
  auto flight = Flight::prepare(options.flight, 0);
  if (!flight) {
    tell(flight.error().to_string());
    return kExitEnvironment;
  }
  Result<bool> recorded = true;
  RunOptions asked = run_options(options);
  asked.before_start = [&](pid_t pid) {
    recorded = flight->start(pid, false);
    return recorded.has_value();
  };
  OnlinePredictions predictions(options.predict, output, &*filter);
  WatchReport report(output, &*filter);
  asked.follower = predictions.follower();
  if (!options.quiet) {
    asked.on_cost = [&](const RunCost& cost) {
      tell(fmt::format("{}: {}", options.command[0], cost_text(cost)));
    };
  }
  const RunResult result = run(options.command, asked, [&](const ReportedFinding& found) {
    report.found(found, [&] { flight->dump(); });
  });
  if (!recorded) {
    tell(recorded.error().to_string());
    return kExitEnvironment;
  }
  for (const std::string& warning : result.warnings) {
    tell(warning);
  }
  if (!result.problem.empty()) {
    tell(result.problem);
    return result.status;
  }
  flight->stop("tsomon run");
  predictions.print_summary(options.command[0]);
  for (const WatchSummary& summary : result.summaries) {
    report.summary(options.command[0], summary);
  }
  bool written = true;
  if (output.file != stdout) {
    written = std::ferror(output.file) == 0;
    written = std::fclose(output.file) == 0 && written;
    if (!written) {
      tell(fmt::format("{}: is not whole, it cannot be written", options.report));
    }
  }
  put_unused(kRunTool, *filter);
  const int status = predictions.worse(report.exit_status());
  if (status == kExitViolation && options.findings.error_exitcode) {
    return *options.findings.error_exitcode;
  }
  if (result.status != 0) {
    return result.status;
  }
  return status == kExitClean && !(result.saved && written) ? kExitEnvironment : status;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "run", "Run a program built with tsomon-c++ and report violations as they happen");
  auto options = std::make_shared<RunArguments>();
  add_property_option(*command, options->properties,
                      {"serializability", "robustness", "sc-serializability", "atomic-sets"},
                      "What is asked of the run");
  add_sets_option(*command, options->sets);
  add_relation_options(*command, options->relation);
  command
      ->add_option("--interval", options->interval,
                   "Milliseconds after which the program hands over what it did at the latest")
      ->check(CLI::Range(1U, 10000U))
      ->capture_default_str();
  command
      ->add_option("-s,--save", options->save,
                   "Also write what the program records to this file, for tsomon check. Replaces a "
                   "capture,\nnothing else; may be a FIFO")
      ->option_text("FILE");
  command
      ->add_option(
          "--report", options->report,
          "Write what is found and the summary to this file, not to standard output, which "
          "the\nprogram has, too")
      ->option_text("FILE");
  command->add_flag("-q,--quiet", options->quiet,
                    "No word, while the program runs, about what watching it costs");
  add_verbose_option(*command, options->verbose);
  add_flight_options(*command, options->flight);
  options->predict.knows_atomics = true;
  add_predict_options(*command, options->predict);
  add_findings_options(*command, options->findings);
  add_output_option(*command, options->output);
  CLI::Option* program =
      command->add_option("command", options->command, "The program and its arguments, after --")
          ->option_text("CMD...");
  CLI::Option* pid =
      command
          ->add_option(
              "-p,--pid", options->sampling.pid,
              "Instead: a process that runs already, in slices: built with tsomon-c++ --dormant\n"
              "and started with TSOMON_OPTIONS=control=on")
          ->check(positive_number())
          ->option_text("PID")
          ->excludes(program);
  command
      ->add_option("--sample", options->share,
                   "Of a process: the share of the time that is watched, as 1%")
      ->check(is_share())
      ->option_text("SHARE=100%")
      ->needs(pid);
  command
      ->add_option(
          "--max-overhead", options->overhead,
          "Of a process: watch so little that it costs at most this share of the process's\n"
          "processor time, judging included, as 2%")
      ->check(is_share())
      ->option_text("SHARE")
      ->needs(pid);
  CLI::Option* focus =
      command
          ->add_flag(
              "--focus", options->sampling.plan.focus,
              "Of a process: half of what watching may cost goes to functions by which units\n"
              "of several threads have met: they are watched longer for it")
          ->needs(pid);
  command
      ->add_option("--label", options->sampling.labels,
                   "With --focus: one of the units is to have a label like this (shell pattern)")
      ->option_text("PATTERN")
      ->needs(focus);
  CLI::Option* cold =
      command
          ->add_flag("--cold", options->sampling.plan.cold,
                     "Of a process: likewise to functions that have not been seen for a while")
          ->needs(pid);
  command
      ->add_option("--trigger", options->trigger,
                   "Of a process: each slice waits for function=PATTERN to be called, for\n"
                   "counter=EVENT>N to come more than N times a second, for the marker\n"
                   "usdt=PROVIDER:NAME, or for signal: SIGUSR1 to tsomon")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const auto trigger = parse_trigger(text);
            return trigger ? std::string() : trigger.error().message;
          },
          ""))
      ->option_text("WHAT")
      ->needs(pid)
      ->excludes(focus)
      ->excludes(cold);
  add_duration(*command, "--slice", options->sampling.plan.slice,
               "Of a process: how long a slice lasts, at most (20ms)");
  add_duration(*command, "--for", options->sampling.time,
               "Of a process: how long in all; without it until SIGINT, or until it ends");
  command
      ->add_option("--control", options->sampling.folder,
                   "Of a process: the folder that control= names")
      ->option_text("FOLDER")
      ->needs(pid);
  command->positionals_at_end();
  command->footer(
      "Exit status: the program's, or 128+N when signal N ended it, unless that is 0; then 0 "
      "nothing\n"
      "found, 1 a violation was found or predicted, 3 inconclusive, 4 a file to write is not "
      "whole. 127 the "
      "program\n"
      "was not found; 126 it cannot be executed; 125 it was not watched; 2 bad usage.\n"
      "TSOMON_OPTIONS in the environment reaches the probe.");
  command->callback([options, &exit_status] {
    if (options->command.empty() && options->sampling.pid == 0) {
      throw CLI::RequiredError("a program after --, or -p PID");
    }
    exit_status = run_run(*options);
  });
}

}  // namespace tsomon
