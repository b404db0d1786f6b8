#include "tools/discover_report.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/attach/discover.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr const char* kTool = "tsomon attach";
constexpr size_t kProposals = 20;

void print_json(pid_t pid, const std::string& program, const attach::Discovery& found) {
  nlohmann::ordered_json proposals = nlohmann::ordered_json::array();
  for (const attach::Proposal& proposal : found.proposals) {
    proposals.push_back({{"watch", proposal.watch},
                         {"data", proposal.data},
                         {"code", proposal.code},
                         {"threads", proposal.place.threads},
                         {"storing_threads", proposal.place.storing_threads},
                         {"stores", proposal.place.stores},
                         {"loads", proposal.place.loads}});
  }
  put_json(stdout,
           {{"file", program},
            {"pid", pid},
            {"events", found.events},
            {"samples", found.samples},
            {"lost_samples", found.lost},
            {"proposals", std::move(proposals)}},
           kTool);
}

void print_text(const std::string& program, const attach::Discovery& found) {
  std::string out = fmt::format("{}: {} samples ({}), {} lost\n", printable(program), found.samples,
                                printable(found.events), found.lost);
  if (found.proposals.empty()) {
    out += "  nothing that two threads accessed and one of them stored to\n";
  }
  for (const attach::Proposal& proposal : found.proposals) {
    out += fmt::format("  --watch {}  {}\n", printable(proposal.watch), printable(proposal.data));
    out += fmt::format(
        "      threads: {}, {} of them with stores; samples: {} stores, {} loads; most in {}\n",
        proposal.place.threads, proposal.place.storing_threads, proposal.place.stores,
        proposal.place.loads, printable(proposal.code));
  }
  put_lines(stdout, out);
}

int report_error(const Error& error) { return put_error(kTool, error); }

}  // namespace

int run_discover(pid_t pid, double seconds, OutputFormat output) {
  const auto target = attach::Target::open(pid);
  if (!target) {
    return report_error(target.error());
  }
  const auto found = attach::discover(*target, seconds, kProposals);
  if (!found) {
    return report_error(found.error());
  }
  output == OutputFormat::kJson ? print_json(pid, target->executable(), *found)
                                : print_text(target->executable(), *found);
  return kExitClean;
}

}  // namespace tsomon
