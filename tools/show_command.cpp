// `tsomon show`: one finding of a store, as `tsomon findings show` has it.
#include <memory>
#include <string>

#include "monitor/service/store.h"
#include "tools/command.h"
#include "tools/kept_findings.h"
#include "tools/output_option.h"
#include "tools/store_option.h"

namespace tsomon {
namespace {

constexpr const char* kShowTool = "tsomon show";

struct ShowArguments {
  std::string store;
  std::string id;
  OutputFormat output = OutputFormat::kText;
};

int run_show(const ShowArguments& options) {
  const auto store = service::Store::visit(options.store);
  return store ? show_findings(**store, options.id, options.output, kShowTool)
               : put_error(kShowTool, store.error());
}

}  // namespace

void add_show_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("show", "All that is known of one finding that tsomon monitor has kept");
  auto options = std::make_shared<ShowArguments>();
  command->add_option("id", options->id, "The fingerprint of a finding, or its first digits")
      ->option_text("ID")
      ->required();
  add_store_option(*command, options->store);
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0; 2 bad usage, no such finding, or no store; 4 the store cannot be used.");
  command->callback([options, &exit_status] { exit_status = run_show(*options); });
}

}  // namespace tsomon
