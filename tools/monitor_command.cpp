// `tsomon monitor`: the service that watches programs for as long as it runs.
#include <memory>
#include <string>

#include "monitor/service/config.h"
#include "tools/command.h"
#include "tools/output.h"

namespace tsomon {
namespace {

constexpr const char* kMonitorTool = "tsomon monitor";

struct MonitorArguments {
  std::string config;
  bool check_config = false;
};

int run_monitor(const MonitorArguments& options) {
  const service::ConfigReading reading = service::read_config(options.config);
  for (const Error& error : reading.errors) {
    put_message(kMonitorTool, error.to_string());
  }
  if (!reading.errors.empty()) {
    return kExitBadInput;
  }
  return kExitClean;
}

}  // namespace

void add_monitor_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("monitor", "Check the configuration of a service that watches programs");
  auto options = std::make_shared<MonitorArguments>();
  command->add_option("--config", options->config, "What is watched, how, and where findings go")
      ->option_text("FILE")
      ->required();
  command
      ->add_flag("--check-config", options->check_config,
                 "Say what is wrong with the configuration, and do nothing else")
      ->required();
  command->footer("Exit status: 0 nothing is wrong with it; 2 something is.");
  command->callback([options, &exit_status] { exit_status = run_monitor(*options); });
}

}  // namespace tsomon
