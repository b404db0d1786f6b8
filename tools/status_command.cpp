// `tsomon status`: what the monitor that keeps a store is doing.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "monitor/service/kept_report.h"
#include "monitor/service/status_client.h"
#include "monitor/service/status_text.h"
#include "monitor/service/store.h"
#include "tools/command.h"
#include "tools/kept_findings.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/store_option.h"

namespace tsomon {
namespace {

constexpr const char* kStatusTool = "tsomon status";

struct StatusArguments {
  std::string store;
  OutputFormat output = OutputFormat::kText;
};

// What the store of a monitor that does not run has; empty: nobody knows.
std::string left_behind(const std::string& folder) {
  const auto store = service::Store::visit(folder);
  if (!store) {
    return ": " + store.error().message;
  }
  const auto kept = (*store)->findings();
  if (!kept || kept->empty()) {
    return kept ? "; it has no findings" : "";
  }
  return fmt::format("; it has {} findings, the last one seen {}", kept->size(),
                     service::time_text(kept->front().last_seen));
}

int run_status(const StatusArguments& options) {
  const auto status = service::ask_status(options.store);
  if (!status && status.error().kind == ErrorKind::kUnreadable) {
    put_message(kStatusTool, status.error().to_string() + left_behind(options.store));
    return kExitBadInput;
  }
  if (!status) {
    return put_error(kStatusTool, status.error());
  }
  if (options.output == OutputFormat::kJson) {
    put_json(stdout, *status, kStatusTool);
  } else {
    put_lines(stdout, service::status_text(*status));
  }
  return kExitClean;
}

}  // namespace

void add_status_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("status", "What the tsomon monitor that keeps a store is doing");
  auto options = std::make_shared<StatusArguments>();
  add_store_option(*command, options->store);
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0 it runs; 2 no monitor keeps this store, or bad usage; 4 it does not answer.");
  command->callback([options, &exit_status] { exit_status = run_status(*options); });
}

}  // namespace tsomon
