// `tsomon submit`: recordings for a fleet to judge.
#include <memory>

#include "tools/command.h"
#include "tools/files_option.h"
#include "tools/fleet_commands.h"
#include "tools/word_option.h"

namespace tsomon {

void add_submit_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("submit", "Give captures and traces to a fleet, which judges them");
  auto options = std::make_shared<SubmitArguments>();
  CLI::Option* const files =
      command
          ->add_option("FILE", options->files,
                       "Captures, perf.data, packs, text traces; - is standard input")
          ->option_text(" ");
  add_fleet_options(*command, options->fleet, true);
  CLI::Option* const store =
      command
          ->add_option("--store", options->store,
                       "Instead of files: the slices that show findings in this store of tsomon "
                       "monitor, the oldest\nfirst, and where it was left off")
          ->option_text("DIR")
          ->excludes(files);
  command
      ->add_flag("--follow", options->follow,
                 "Of a store: go on with what comes, and submit again what the fleet has lost, "
                 "until a signal ends it")
      ->needs(store);
  command
      ->add_option("--ask", options->ask, "What is asked about each; separated by commas [check]")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(one_of({"check", "predict", "explain"}))
      ->option_text("check|predict|explain");
  command
      ->add_option(
          "--set", options->set,
          "An option of that command, as property=robustness or max-work=60. May be repeated")
      ->allow_extra_args(false)
      ->option_text("NAME=VALUE");
  command
      ->add_option("--suppressions", options->suppressions,
                   "Findings that are known, as check reads them")
      ->option_text("FILE");
  command
      ->add_option("--tenant", options->tenant,
                   "Whose work it is: tenants are served in turn; letters, digits, hyphens")
      ->capture_default_str()
      ->option_text("NAME");
  command->add_option("--host", options->host, "Where it was recorded (this machine)")
      ->option_text("NAME");
  command->add_flag("--no-sources", options->no_sources,
                    "Leave the source files out that recorded events lie in");
  command->add_flag("--wait", options->wait,
                    "Wait for the verdicts, and submit again what the fleet has lost");
  add_files_options(*command, options->search);
  add_output_option(*command, options->output);
  command->footer(
      "Prints an id for each file and question. The same command again sends what is not there, "
      "and\n"
      "nothing twice; what was given up is tried again.\n"
      "Exit status: 0 the fleet has it, with --wait: nothing found; 1 with --wait: a violation was "
      "found;\n"
      "of a store: 0 all is judged;\n"
      "2 bad usage, or a file cannot be read (the others are still submitted); 3 with --wait: "
      "inconclusive,\n"
      "or it was given up; 4 the fleet cannot be reached.");
  command->callback([options, &exit_status] {
    if (options->files.empty() && options->store.empty()) {
      throw CLI::RequiredError("FILE or --store");
    }
    exit_status = run_submit(*options);
  });
}

}  // namespace tsomon
