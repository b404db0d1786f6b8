// `tsomon critical-races`: the races at which a program's interleavings go wrong.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "monitor/explore/critical_races.h"
#include "tools/command.h"
#include "tools/exploration_options.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/stop_signals.h"

namespace tsomon {
namespace {

constexpr const char* kRacesTool = "tsomon critical-races";

struct RacesArguments : ExplorationArguments {
  OutputFormat output = OutputFormat::kText;
};

int run_critical_races(RacesArguments& options) {
  const explore::ExploreOptions& asked = options.asked();
  const StopSignals signals;
  const auto explored = explore::explore_races(asked);
  if (!explored) {
    put_message(kRacesTool, explored.error().to_string());
    if (options.output == OutputFormat::kJson) {
      put_error_json(asked.command[0], "", explored.error(), kRacesTool);
    }
    return exit_status_of(explored.error());
  }
  if (options.output == OutputFormat::kJson) {
    put_json(stdout, explore::races_json(*explored, asked), kRacesTool);
    for (const std::string& note : explored->notes) {
      put_message(kRacesTool, note);
    }
  } else {
    put_lines(stdout, explore::races_text(*explored, asked));
  }
  return !explored->faults.empty() ? kExitViolation
         : explored->refused       ? kExitBadInput
         : explored->complete()    ? kExitClean
                                   : kExitInconclusive;
}

}  // namespace

void add_critical_races_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "critical-races", "Find the races at which the interleavings of a small program go wrong");
  auto options = std::make_shared<RacesArguments>();
  add_exploration_options(*command, *options);
  add_property_option(*command, options->properties,
                      {"serializability", "robustness", "linearizability"},
                      "An interleaving that violates it is faulty, too");
  add_object_option(*command, options->object,
                    "Of linearizability: what the operations are of; auto: by their names");
  add_output_option(*command, options->output);
  add_explored_program(*command, *options);
  command->footer(
      "Exit status: 0 no interleaving is faulty; 1 some are; 2 bad usage, a program that was not\n"
      "built with tsomon-c++ or calls what cannot be controlled; 3 none was faulty, but not all\n"
      "were seen; 4 the environment.");
  command->callback([options, &exit_status] {
    if (options->explore.command.empty()) {
      throw CLI::RequiredError("A program, after --");
    }
    exit_status = run_critical_races(*options);
  });
}

}  // namespace tsomon
