// `tsomon monitor`: the service that watches programs for as long as it runs.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "monitor/service/config.h"
#include "monitor/service/kept_report.h"
#include "monitor/service/separation.h"
#include "monitor/service/service.h"
#include "monitor/service/trusted_file.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kMonitorTool = "tsomon monitor";

struct MonitorArguments {
  std::string config;
  bool check_config = false;
  OutputFormat output = OutputFormat::kText;
};

// As sd-daemon(3) has them.
std::string level(const service::ServiceConfig& config, int number) {
  return config.journal ? fmt::format("<{}>", number) : std::string();
}
constexpr int kWarning = 4;
constexpr int kNotice = 5;

void put_finding(const service::NewFinding& found, OutputFormat format, const std::string& before) {
  const service::SeenFinding& finding = found.finding;
  const char* const verdict = finding.predicted  ? "predicted"
                              : finding.definite ? "definite"
                                                 : "possible";
  if (format == OutputFormat::kJson) {
    put_json(stdout,
             {{"file", found.target},
              {"pid", found.pid},
              {"host", found.place.host},
              {"build", found.place.build},
              {"time", service::time_text(found.time)},
              {"property", finding.property},
              {"verdict", verdict},
              {"complete", false},
              {"summary", finding.summary},
              {"findings", nlohmann::ordered_json::array(
                               {nlohmann::ordered_json::parse(finding.json, nullptr, false)})}},
             kMonitorTool);
    return;
  }
  put_lines(stdout, fmt::format("{}{} {}: new finding {} ({} {}): {}\n", before,
                                service::time_text(found.time), printable(found.target),
                                printable(finding.fingerprint), verdict, finding.property,
                                printable(finding.summary)));
}

int run_monitor(const MonitorArguments& options) {
  service::ConfigReading reading = service::read_trusted_config(options.config, ::geteuid());
  for (const Error& error : reading.errors) {
    put_message(kMonitorTool, error.to_string());
  }
  if (!reading.errors.empty()) {
    return reading.errors.front().kind == ErrorKind::kEnvironment ? kExitEnvironment
                                                                  : kExitBadInput;
  }
  if (options.check_config) {
    return kExitClean;
  }
  const std::string warning = level(reading.config, kWarning);
  const std::string notice = level(reading.config, kNotice);
  service::ServiceOutput output;
  output.found = [&](const service::NewFinding& found) {
    put_finding(found, options.output, notice);
  };
  output.message = [&](const std::string& text) { put_message(warning + kMonitorTool, text); };
  auto separated = service::separate(options.config, reading.config);
  if (!separated) {
    put_message(kMonitorTool, separated.error().to_string());
    return exit_status_of(separated.error());
  }
  for (const std::string& note : separated->notes) {
    output.message(note);
  }
  service::Service monitor(options.config, std::move(reading.config), std::move(separated->access),
                           std::move(output));
  if (const auto done = monitor.run(); !done) {
    put_message(kMonitorTool, done.error().to_string());
    return exit_status_of(done.error());
  }
  return kExitClean;
}

}  // namespace

void add_monitor_command(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "monitor", "Watch running programs for as long as they run, and keep what is found");
  auto options = std::make_shared<MonitorArguments>();
  command->add_option("--config", options->config, "What is watched, how, and where findings go")
      ->option_text("FILE")
      ->required();
  command->add_flag("--check-config", options->check_config,
                    "Say what is wrong with the configuration, and do nothing else");
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0 it ended because it was asked to, or no target can come again, whatever\n"
      "was found (tsomon findings says it); 2 the configuration or the store is wrong; 4 the\n"
      "store cannot be used, others may change what it relies on, privileges cannot be given\n"
      "up, or the helper has ended.\n"
      "SIGTERM and SIGINT end it, SIGHUP reads the configuration again.");
  command->callback([options, &exit_status] { exit_status = run_monitor(*options); });
}

}  // namespace tsomon
