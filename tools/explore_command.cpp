// `tsomon explore`: every execution of a small program, under SC or TSO.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "monitor/explain/explored_hints.h"
#include "monitor/explore/critical_races.h"
#include "monitor/explore/explore.h"
#include "monitor/explore/explore_clients.h"
#include "monitor/specification/sequential_program.h"
#include "tools/command.h"
#include "tools/findings_option.h"
#include "tools/number_option.h"
#include "tools/object_option.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/property_option.h"
#include "tools/stop_signals.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

constexpr const char* kExploreTool = "tsomon explore";

struct ExploreArguments {
  explore::ExploreOptions explore;
  std::string model = "tso";
  std::string strategy = "dpor";
  std::vector<std::string> properties;
  std::string object = "auto";
  std::string specification;
  std::string clients;
  FindingsChoice findings;
  OutputFormat output = OutputFormat::kText;
};

bool asks(const ExploreArguments& options, const char* property) {
  return std::find(options.properties.begin(), options.properties.end(), property) !=
         options.properties.end();
}

int refuse(const ExploreArguments& options, const Error& error) {
  put_message(kExploreTool, error.to_string());
  if (options.output == OutputFormat::kJson) {
    put_error_json(options.explore.command.empty() ? "" : options.explore.command[0], "", error,
                   kExploreTool);
  }
  return exit_status_of(error);
}

int run_explore(ExploreArguments& options) {
  auto filter = options.findings.filter();
  if (!filter) {
    put_message(kExploreTool, filter.error().to_string());
    return kExitBadInput;
  }
  explore::ExploreOptions& asked = options.explore;
  asked.model = options.model == "sc" ? explore::Model::kSc : explore::Model::kTso;
  asked.strategy = options.strategy == "naive"    ? explore::Strategy::kNaive
                   : options.strategy == "random" ? explore::Strategy::kRandom
                   : options.strategy == "pct"    ? explore::Strategy::kPct
                                                  : explore::Strategy::kDpor;
  asked.serializability = asks(options, "serializability");
  asked.robustness = asks(options, "robustness");
  asked.linearizability = asks(options, "linearizability");
  asked.object = linearizability::object_kind(options.object);
  if (!options.specification.empty()) {
    auto started = SequentialProgram::start(options.specification);
    if (!started) {
      return refuse(options, started.error());
    }
    asked.specification = std::move(*started);
  }
  const StopSignals signals;
  auto explored = options.clients.empty() ? explore::explore(asked)
                                          : explore::explore_clients(asked, options.clients);
  if (!explored) {
    return refuse(options, explored.error());
  }
  const explore::ExploreOptions of_findings =
      explored->client.empty() ? asked : explore::of_client(asked, explored->client);
  add_repairs(of_findings, &*explored);
  HiddenFindings hidden(&*filter);
  if (options.output == OutputFormat::kJson) {
    auto json = explore::exploration_json(*explored, asked, &hidden);
    if (const auto decided = explore::what_decided(of_findings, *explored)) {
      json["decided"] = explore::decided_json(*decided);
    }
    put_json(stdout, json, kExploreTool);
  } else {
    put_lines(stdout, explore::exploration_text(*explored, asked, &hidden));
  }
  for (size_t i = 0; options.output == OutputFormat::kJson && i < explored->notes.size(); ++i) {
    put_message(kExploreTool, explored->notes[i]);
  }
  put_unused(kExploreTool, *filter);
  if (explored->not_saved) {
    return kExitEnvironment;
  }
  const bool complete = explored->complete();
  const bool found = !explored->findings.empty();
  if ((!found || hidden.all()) && explored->refused) {
    return kExitBadInput;
  }
  return options.findings.status(status_of(found      ? Verdict::kDefinite
                                           : complete ? Verdict::kClean
                                                      : Verdict::kInconclusive,
                                           hidden, complete));
}

void refuse_unfit(const ExploreArguments& options) {
  if (options.object != "auto" && !asks(options, "linearizability") && options.clients.empty()) {
    throw CLI::ValidationError("--object", "belongs to --property linearizability");
  }
  if (!options.specification.empty() && !asks(options, "linearizability") &&
      options.clients.empty()) {
    throw CLI::ValidationError("--specification", "belongs to --property linearizability");
  }
  if (options.explore.preemptions != UINT32_MAX && options.strategy != "naive") {
    throw CLI::ValidationError("--preemptions", "needs --strategy naive");
  }
  if (options.explore.command.empty()) {
    throw CLI::RequiredError("A program, after --");
  }
}

}  // namespace

void add_explore_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "explore", "Run every execution of a small program built with tsomon-c++, under SC or TSO");
  auto options = std::make_shared<ExploreArguments>();
  explore::ExploreOptions& asked = options->explore;
  command->add_option("--model", options->model, "The memory model of the executions")
      ->check(one_of({"sc", "tso"}))
      ->capture_default_str();
  command
      ->add_option("--strategy", options->strategy,
                   "dpor: one execution of every class; naive: every sequence of steps; random\n"
                   "and pct: as many as --executions says (1000)")
      ->check(one_of({"dpor", "naive", "random", "pct"}))
      ->capture_default_str();
  command->add_flag("--reuse", asked.reuse,
                    "Give freed memory out again: of the same size, to the thread that freed it,\n"
                    "the last first");
  command->add_flag("!--no-spurious", asked.spurious,
                    "Waits on condition variables never wake by themselves");
  command
      ->add_option("--preemptions", asked.preemptions,
                   "Of naive: only executions with at most so many")
      ->option_text("N");
  command->add_option("--executions", asked.executions, "End after so many")
      ->check(positive_number())
      ->option_text("N");
  command->add_option("--time", asked.seconds, "End after so many seconds")
      ->check(CLI::Range(0.001, 1e9))
      ->option_text("S");
  command->add_option("--seed", asked.seed, "Of random and pct")->capture_default_str();
  command->add_option("--depth", asked.depth, "Of pct: priorities change depth - 1 times")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  command->add_option("--steps", asked.max_steps, "Steps of one execution at most")
      ->check(CLI::Range(1, 16000))
      ->capture_default_str();
  command
      ->add_option(
          "--replay", asked.replay,
          "Run the schedule of a finding, with its output; with --clients it is CLIENT@SCHEDULE")
      ->option_text("SCHEDULE");
  command->add_option("--jobs", asked.jobs, "Processes of the program that run at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--fork", asked.fork,
                    "Run every execution in a process of its own: slower, and finds the same");
  add_property_option(*command, options->properties,
                      {"serializability", "robustness", "linearizability"},
                      "Judge every execution, too");
  add_object_option(*command, options->object,
                    "Of linearizability: what the operations are of; auto: by their names");
  add_specification_option(*command, options->specification);
  command
      ->add_option("--clients", options->clients,
                   "Every client of the object that PROGRAM registers (tsomon_client.h), smallest\n"
                   "first, within the bounds that this file says, until one goes wrong")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  command
      ->add_option("-o", asked.folder,
                   "Write a text trace of every class into this folder; with --clients\nof the "
                   "client that goes wrong")
      ->option_text("DIR");
  add_findings_options(*command, options->findings);
  add_output_option(*command, options->output);
  command->add_option("command", asked.command, "The program and its arguments, after --")
      ->option_text("CMD...");
  command->positionals_at_end();
  command->footer(
      "Exit status: 0 every class was explored and nothing was found; 1 something was found;\n"
      "2 bad usage, a program that was not built with tsomon-c++ or calls what cannot be\n"
      "controlled; 3 nothing was found, but not every class was explored; 4 the environment,\n"
      "or a trace that could not be written.");
  command->callback([options, &exit_status] {
    refuse_unfit(*options);
    exit_status = run_explore(*options);
  });
}

}  // namespace tsomon
