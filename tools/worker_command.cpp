// `tsomon worker`: judges what waits in a fleet.
#include <memory>

#include "tools/command.h"
#include "tools/fleet_commands.h"
#include "tools/number_option.h"

namespace tsomon {

void add_worker_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("worker", "Judge what was submitted to a fleet");
  auto options = std::make_shared<WorkerArguments>();
  add_fleet_options(*command, options->fleet, true);
  command->add_flag("--once", options->once, "End when nothing waits and no worker is at work");
  command->add_flag("--idle", options->idle, "Work only while nobody else needs the processor");
  command->add_option("--jobs", options->jobs, "Threads for one piece of work")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  command
      ->add_option("--max-memory", options->max_memory,
                   "MiB that one piece of work may take before it is ended")
      ->check(CLI::Range(uint64_t{64}, uint64_t{1} << 24))
      ->capture_default_str();
  add_duration(*command, "--max-time", options->max_time,
               "Processor time that one piece of work may take [1h]");
  add_duration(*command, "--lease", options->lease,
               "How long work is this worker's without a word of it [60s]");
  command
      ->add_option("--tries", options->tries,
                   "How often work is tried that ends without a result, by whatever worker")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100}))
      ->capture_default_str();
  command->add_option("--name", options->name, "Of this worker (host, and number of the process)")
      ->option_text("NAME");
  command->footer(
      "Any number of workers may run, and end at any moment: a verdict counts once.\n"
      "Exit status: 0; 2 bad usage; 4 the fleet cannot be reached.\n"
      "SIGINT and SIGTERM give back what it works on.");
  command->callback([options, &exit_status] { exit_status = run_worker(*options); });
}

}  // namespace tsomon
