// `tsomon findings`: what a store of `tsomon monitor` has kept, or a fleet.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "monitor/service/kept_report.h"
#include "monitor/service/store.h"
#include "tools/command.h"
#include "tools/fleet_commands.h"
#include "tools/kept_findings.h"
#include "tools/output.h"
#include "tools/output_option.h"
#include "tools/store_option.h"
#include "tools/word_option.h"

namespace tsomon {
namespace {

using service::Store;

constexpr const char* kFindingsTool = "tsomon findings";

struct FindingsArguments {
  std::string store;
  FleetAddress fleet;
  std::string tenant;
  std::string action = "list";
  std::string id;
  std::string suppressions;
  OutputFormat output = OutputFormat::kText;
};

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int refuse(const Error& error) { return put_error(kFindingsTool, error); }

int list_incidents(const FindingsArguments& options, Store& store) {
  const auto incidents = store.incidents();
  if (!incidents) {
    return refuse(incidents.error());
  }
  for (const service::Incident& each : *incidents) {
    if (options.output == OutputFormat::kJson) {
      put_json(stdout, service::incident_json(each), kFindingsTool);
    } else {
      put_lines(stdout, service::incident_lines(each));
    }
  }
  if (incidents->empty() && options.output == OutputFormat::kText) {
    put_lines(stdout, "no incident is kept\n");
  }
  return kExitClean;
}

int suppress(const FindingsArguments& options, Store& store) {
  const auto kept = store.find(options.id);
  if (!kept) {
    return refuse(kept.error());
  }
  if (const auto done = store.suppress(kept->front(), options.suppressions); !done) {
    return refuse(done.error());
  }
  put_message(kFindingsTool, fmt::format("{} is suppressed in {}", kept->front().fingerprint,
                                         options.suppressions.empty() ? store.suppressions_file()
                                                                      : options.suppressions));
  return kExitClean;
}

int forget(const FindingsArguments& options, Store& store) {
  const auto gone = store.forget(options.id);
  if (!gone) {
    return refuse(gone.error());
  }
  put_message(kFindingsTool, fmt::format("forgotten: {} findings", *gone));
  return kExitClean;
}

int findings_of_fleet(const FindingsArguments& options) {
  if (options.action != "list" && options.action != "show") {
    put_message(kFindingsTool, options.action + ": expected list or show of a fleet");
    return kExitBadInput;
  }
  return run_fleet_findings({options.fleet, options.tenant, options.id, options.output});
}

int run_findings(const FindingsArguments& options) {
  const bool lists = options.action == "list" || options.action == "incidents";
  if (options.id.empty() != lists) {
    put_message(kFindingsTool,
                options.id.empty()
                    ? fmt::format("{}: expected the fingerprint of a finding, or "
                                  "its first digits, found none",
                                  options.action)
                    : options.action + " has no further word; show ID shows one finding");
    return kExitBadInput;
  }
  if (!options.fleet.url.empty()) {
    return findings_of_fleet(options);
  }
  if (options.store.empty()) {
    put_message(kFindingsTool, "expected --store DIR or --fleet URL, found none");
    return kExitBadInput;
  }
  const auto store = Store::visit(options.store);
  if (!store) {
    return refuse(store.error());
  }
  if (options.action == "incidents") {
    return list_incidents(options, **store);
  }
  if (options.action == "suppress") {
    return suppress(options, **store);
  }
  if (options.action == "forget") {
    return forget(options, **store);
  }
  const bool all = options.action == "list";
  return show_findings(**store, all ? std::nullopt : std::optional(options.id), options.output,
                       kFindingsTool);
}

}  // namespace

void add_findings_command(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("findings", "What tsomon monitor has found and kept, or a fleet");
  auto options = std::make_shared<FindingsArguments>();
  // The environment counts where the command line says nothing.
  CLI::Option* const store =
      add_store_option(*command, options->store)->required(false)->envname({});
  add_fleet_options(*command, options->fleet, false)->envname({})->excludes(store);
  command->add_option("--tenant", options->tenant, "Of a fleet: only what this one submitted")
      ->option_text("NAME");
  command
      ->add_option("action", options->action,
                   "list: all, the last one first; show: all that is known of one; suppress: it is "
                   "not\ntold any more; forget: it and its slices go, and it is new when it comes "
                   "again;\nincidents: what flight recorders have kept")
      ->check(one_of({"list", "show", "suppress", "forget", "incidents"}))
      ->option_text("list|show|suppress|forget|incidents [list]");
  command->add_option("id", options->id, "The fingerprint of a finding, or its first digits")
      ->option_text("ID");
  command
      ->add_option("--suppressions", options->suppressions,
                   "Where suppress adds its line (DIR/suppressions, which the monitor reads)")
      ->option_text("FILE");
  add_output_option(*command, options->output);
  command->footer(
      "Exit status: 0; 2 bad usage, no such finding, or no store; 4 the store or the fleet cannot "
      "be "
      "used.");
  command->callback([options, &exit_status] {
    if (options->store.empty() && options->fleet.url.empty()) {
      options->store = environment("TSOMON_STORE");
      options->fleet.url = options->store.empty() ? environment("TSOMON_FLEET") : std::string();
    }
    exit_status = run_findings(*options);
  });
}

}  // namespace tsomon
