// The program `tsomon-fleet`, which tsomon becomes for what speaks to a fleet (tools/fleet_commands.h).
#include <cstdio>
#include <exception>
#include <string>

#include "tools/command.h"
#include "tools/number_option.h"
#include "tools/output.h"

int main(int argc, char** argv) {
  int exit_status = tsomon::kExitClean;
  try {
    CLI::App app("What tsomon does with a fleet.", "tsomon");
    app.require_subcommand(1);
    tsomon::add_findings_command(app, exit_status);
    tsomon::add_fleet_command(app, exit_status);
    tsomon::add_submit_command(app, exit_status);
    tsomon::add_worker_command(app, exit_status);
    tsomon::refuse_negative_numbers(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app.exit(success);
    } catch (const CLI::ParseError& error) {
      tsomon::put_message("tsomon", error.what());
      return tsomon::kExitBadInput;
    }
  } catch (const std::exception& error) {
    tsomon::put_message("tsomon", error.what());
    return tsomon::kExitEnvironment;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "tsomon: standard output could not be written completely\n");
    return tsomon::kExitEnvironment;
  }
  return exit_status;
}
