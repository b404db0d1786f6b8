// `tsomon fleet` and `tsomon findings --fleet`.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "monitor/fleet/contents.h"
#include "monitor/fleet/digest.h"
#include "monitor/fleet/fleet_findings.h"
#include "monitor/report/json_fields.h"
#include "monitor/service/kept_report.h"
#include "tools/command.h"
#include "tools/fleet/open.h"
#include "tools/kept_findings.h"
#include "tools/output.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kFleetTool = "tsomon fleet";

// What comes from a server may be anything.
std::string canary_text(const fleet::Canary& canary) {
  std::string text =
      fmt::format("    {} of {} ({}), at {}\n", printable(canary.host), printable(canary.tenant),
                  printable(canary.store), service::time_text(canary.time));
  report::for_each_object(report::array_of(canary.status, "targets"), [&](const auto& target) {
    const auto& slices = report::object_of(target, "slices");
    const auto& events = report::object_of(target, "events");
    text += fmt::format(
        "        {}: {}; watched {:.2f} s of {:.0f} s; slices: {} judged of {} planned; events: {} "
        "seen, {} lost; violations seen: {}\n",
        printable(report::text_of(target, "name")), printable(report::text_of(target, "state")),
        report::real_of(target, "watched_seconds"), report::real_of(target, "elapsed_seconds"),
        report::number_of(slices, "judged"), report::number_of(slices, "planned"),
        report::number_of(events, "seen"), report::number_of(events, "lost"),
        report::number_of(report::object_of(target, "violations"), "seen"));
  });
  return text;
}

nlohmann::ordered_json canary_json(const fleet::Canary& canary) {
  return {{"tenant", canary.tenant},
          {"host", canary.host},
          {"store", canary.store},
          {"time", service::time_text(canary.time)},
          {"status", canary.status}};
}

int put_status(const fleet::FleetStatus& status, const std::vector<fleet::Canary>& canaries,
               OutputFormat output) {
  if (output == OutputFormat::kJson) {
    nlohmann::ordered_json parked = nlohmann::ordered_json::array();
    for (const fleet::ParkedWork& each : status.parked_work) {
      parked.push_back(
          {{"id", each.id}, {"tenant", each.tenant}, {"file", each.name}, {"reason", each.reason}});
    }
    nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
    for (const fleet::Canary& each : canaries) {
      hosts.push_back(canary_json(each));
    }
    put_json(stdout,
             {{"schema", 1},
              {"tool", kFleetTool},
              {"server", status.server},
              {"waiting", status.waiting},
              {"running", status.running},
              {"done", status.done},
              {"parked", status.parked},
              {"done_in_last_minute", status.done_lately},
              {"tenants", status.tenants},
              {"parked_work", std::move(parked)},
              {"canaries", std::move(hosts)}},
             kFleetTool);
    return kExitClean;
  }
  std::string text =
      fmt::format("{}\nwaiting {}, running {}, done {} ({} in the last minute), parked {}\n",
                  printable(status.server), status.waiting, status.running, status.done,
                  status.done_lately, status.parked);
  for (const auto& [tenant, waiting] : status.tenants) {
    text += fmt::format("    {} waiting of {}\n", waiting, printable(tenant));
  }
  for (const fleet::ParkedWork& each : status.parked_work) {
    text += fmt::format("    parked {} {} of {}: {}\n", printable(each.id), printable(each.name),
                        printable(each.tenant), printable(each.reason));
  }
  if (!canaries.empty()) {
    text += fmt::format("canaries: {}\n", canaries.size());
  }
  for (size_t i = 0; i < canaries.size() && i < fleet::Fleet::kMostListed; ++i) {
    text += canary_text(canaries[i]);
  }
  put_lines(stdout, text);
  return kExitClean;
}

int show_verdict(fleet::Fleet& fleet, const std::string& id) {
  if (!fleet::is_digest(id)) {
    put_message(kFleetTool, "expected the id that submit has printed, found " + printable(id));
    return kExitBadInput;
  }
  const auto verdict = fleet.verdict(id);
  if (!verdict) {
    return put_error(kFleetTool, verdict.error());
  }
  if (!*verdict) {
    put_message(kFleetTool, id + " has no verdict");
    return kExitInconclusive;
  }
  Result<std::string> text = (*verdict)->result;
  if (!(*verdict)->chunks.chunks.empty()) {
    text = fleet::fetch_part(fleet, (*verdict)->chunks);
  }
  if (!text) {
    return put_error(kFleetTool, text.error());
  }
  put_lines(stdout, *text);
  return (*verdict)->exit_status;
}

// Empty: nothing is.
std::string what_is_wrong(const FleetArguments& options) {
  const bool is_show = options.action == "show";
  const bool is_prune = options.action == "prune";
  const bool has_age = options.recordings.count() != 0 || options.findings.count() != 0;
  return is_show && options.id.empty()     ? "show: expected the id of work, found none"
         : !is_show && !options.id.empty() ? options.action + " has no further word"
         : is_prune && !has_age ? "prune: expected --recordings AGE or --findings AGE, found none"
         : !is_prune && has_age ? options.action +
                                      " removes nothing: --recordings and --findings "
                                      "are options of prune"
                                : "";
}

int prune(fleet::Fleet& fleet, const FleetArguments& options) {
  // Longer than there are computers.
  constexpr std::chrono::hours kNever{24 * 365 * 50};
  const auto age_of = [&](std::chrono::microseconds age) {
    return age.count() == 0 ? kNever : age;
  };
  const auto pruned = fleet.prune(age_of(options.recordings), age_of(options.findings));
  if (!pruned) {
    return put_error(kFleetTool, pruned.error());
  }
  if (options.output == OutputFormat::kJson) {
    put_json(stdout,
             {{"schema", 1},
              {"tool", kFleetTool},
              {"removed",
               {{"chunks", pruned->chunks},
                {"verdicts", pruned->verdicts},
                {"findings", pruned->sightings},
                {"parked", pruned->parked},
                {"canaries", pruned->canaries}}}},
             kFleetTool);
  } else {
    put_lines(stdout, fmt::format("removed: {} chunks of recordings; {} verdicts with {} findings; "
                                  "{} given up; {} canaries\n",
                                  pruned->chunks, pruned->verdicts, pruned->sightings,
                                  pruned->parked, pruned->canaries));
  }
  return kExitClean;
}

}  // namespace

int run_fleet(const FleetArguments& options) {
  if (const std::string wrong = what_is_wrong(options); !wrong.empty()) {
    put_message(kFleetTool, wrong);
    return kExitBadInput;
  }
  int exit_status = kExitClean;
  const auto fleet = open_fleet_of(options.fleet, kFleetTool, &exit_status);
  if (fleet == nullptr) {
    return exit_status;
  }
  if (options.action == "show") {
    return show_verdict(*fleet, options.id);
  }
  if (options.action == "prune") {
    return prune(*fleet, options);
  }
  const auto status = fleet->status();
  std::vector<fleet::Canary> canaries;
  const auto told =
      fleet->canaries([&](fleet::Canary&& canary) { canaries.push_back(std::move(canary)); });
  if (!status || !told) {
    return put_error(kFleetTool, status ? told.error() : status.error());
  }
  std::sort(canaries.begin(), canaries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.tenant, a.host, a.store) < std::tie(b.tenant, b.host, b.store);
  });
  return put_status(*status, canaries, options.output);
}

int run_fleet_findings(const FleetFindingsArguments& options) {
  constexpr const char* kTool = "tsomon findings";
  int exit_status = kExitClean;
  const auto fleet = open_fleet_of(options.fleet, kTool, &exit_status);
  if (fleet == nullptr) {
    return exit_status;
  }
  const auto found = fleet::fleet_findings(*fleet, options.id, options.tenant);
  if (!found) {
    return put_error(kTool, found.error());
  }
  if (found->empty() && !options.id.empty()) {
    put_message(kTool, "no finding has a fingerprint that begins with " + printable(options.id));
    return kExitBadInput;
  }
  put_kept(
      *found, [](const service::KeptFinding&) { return std::string(); }, !options.id.empty(),
      options.output, kTool);
  return kExitClean;
}

}  // namespace tsomon
