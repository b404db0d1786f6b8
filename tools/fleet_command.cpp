// `tsomon fleet`: what waits, what was judged, what is old.
#include <memory>

#include "tools/command.h"
#include "tools/fleet_commands.h"
#include "tools/number_option.h"
#include "tools/word_option.h"

namespace tsomon {

void add_fleet_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("fleet", "What waits in a fleet, what was judged, what goes");
  auto options = std::make_shared<FleetArguments>();
  add_fleet_options(*command, options->fleet, true);
  command
      ->add_option("action", options->action,
                   "status: how much waits, runs, is done, and was given up, and why; show: the "
                   "verdict on\nID, as the command wrote it; prune: removes what is old")
      ->check(one_of({"status", "show", "prune"}))
      ->required()
      ->option_text("status|show|prune");
  command->add_option("id", options->id, "What submit has printed")->option_text("ID");
  add_duration(*command, "--recordings", options->recordings,
               "prune: recordings that were submitted longer ago than this (30d, 12h)");
  add_duration(*command, "--findings", options->findings,
               "prune: verdicts with their findings, work that was given up, canaries that said "
               "nothing\nfor longer than this");
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0; of show that of the command; 2 bad usage, no such work; 3 of show: not "
      "judged yet;\n"
      "4 the fleet cannot be reached.");
  command->callback([options, &exit_status] { exit_status = run_fleet(*options); });
}

}  // namespace tsomon
