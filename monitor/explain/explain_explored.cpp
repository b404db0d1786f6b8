#include "monitor/explain/explain_explored.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "monitor/explore/program_repair.h"

namespace tsomon {
namespace {

using explore::Exploration;
using explore::ExploreFinding;

explore::ProgramRepair program_repair(const explain::Repair& repair) {
  explore::ProgramRepair made;
  for (const explain::FencePlace& fence : repair.fences) {
    made.fences.push_back(fence.location);
  }
  for (const explain::BlockPlace& block : repair.blocks) {
    const explain::BlockCode& code = block.code;
    made.blocks.push_back({code.function, code.file, code.first_line, code.last_line, code.inside,
                           code.outside, code.whole});
  }
  return made;
}

// The locations of the units that the explained violations are made of.
std::set<std::string> explained_locations(const Explanation& explanation) {
  std::set<std::string> locations;
  for (const ExplainedInput& input : explanation.violating) {
    for (const Finding& finding : input.report.findings) {
      for (const CycleEdge& edge : finding.violation.cycle) {
        for (const uint32_t e : {edge.from, edge.to}) {
          locations.insert(
              explain::location_of(input.trace, static_cast<uint32_t>(finding.index[e])));
        }
      }
    }
  }
  return locations;
}

bool is_at(const ExploreFinding& finding, const std::set<std::string>& locations) {
  return std::any_of(finding.locations.begin(), finding.locations.end(),
                     [&](const std::string& one) { return locations.count(one) != 0; });
}

bool same_finding(const ExploreFinding& a, const ExploreFinding& b) {
  return a.fingerprint == b.fingerprint;
}

bool has_finding(const Exploration& exploration, const ExploreFinding& finding) {
  return std::any_of(exploration.findings.begin(), exploration.findings.end(),
                     [&](const ExploreFinding& one) { return same_finding(one, finding); });
}

ExploredRepair compare(const Exploration& before, const Exploration& after, const std::string& kind,
                       const std::set<std::string>& locations) {
  ExploredRepair result;
  result.complete = after.complete();
  result.executions = after.executions;
  result.classes = after.classes;
  result.notes = after.notes;
  bool stays = false;
  for (const ExploreFinding& finding : after.findings) {
    if (finding.kind == kind && is_at(finding, locations)) {
      stays = true;
      result.left = result.left.empty() ? finding.trace : result.left;
    } else {
      result.others.push_back(
          {finding.kind, finding.text, finding.locations, !has_finding(before, finding)});
    }
  }
  for (const ExploreFinding& finding : before.findings) {
    if (!(finding.kind == kind && is_at(finding, locations)) && !has_finding(after, finding)) {
      result.went_too.push_back(finding.kind + ": " + finding.text);
    }
  }
  if (!after.applied) {
    result.notes.emplace_back("the program never came to the places of the repair");
  } else if (stays) {
    result.gone = false;
  } else if (after.executions == 0) {
    result.notes.emplace_back("every execution has to wait inside an atomic block");
  } else if (after.complete()) {
    result.gone = true;
  }
  return result;
}

}  // namespace

std::optional<bool> both_verified(const explain::Repair& repair, const ExploredRepair* explored) {
  if (explored == nullptr || repair.verified == std::optional(false)) {
    return repair.verified;
  }
  return explored->gone;
}

Result<ExploredRepair> explore_repair(const explain::Repair& repair, const Exploration& before,
                                      const std::string& kind,
                                      const std::set<std::string>& locations,
                                      explore::ExploreOptions options) {
  const explore::ProgramRepair change = program_repair(repair);
  options.repair = &change;
  options.strategy = change.blocks.empty() ? explore::Strategy::kDpor : explore::Strategy::kStates;
  return explore::explore(options).map(
      [&](const Exploration& after) { return compare(before, after, kind, locations); });
}

Result<ExploredRepairs> explore_repairs(const Explanation& explanation,
                                        explore::ExploreOptions options) {
  ExploredRepairs result;
  options.robustness = explanation.property == Property::kRobustness;
  options.serializability = !options.robustness;
  if (explanation.property == Property::kScSerializability) {
    options.model = explore::Model::kSc;
  }
  const std::string kind = options.robustness ? "robustness" : "serializability";
  const auto before = explore::explore(options);
  if (!before) {
    return tl::unexpected<Error>(before.error());
  }
  const std::set<std::string> locations = explained_locations(explanation);
  result.notes = before->notes;
  result.shown = std::any_of(before->findings.begin(), before->findings.end(),
                             [&](const ExploreFinding& finding) {
                               return finding.kind == kind && is_at(finding, locations);
                             });
  if (!result.shown) {
    result.notes.emplace_back("no explored execution of the program has the violation");
    return result;
  }
  for (const explain::Repair& repair : explanation.repairs.repairs) {
    auto tried = explore_repair(repair, *before, kind, locations, options);
    if (!tried) {
      return tl::unexpected<Error>(tried.error());
    }
    result.repairs.push_back(std::move(*tried));
  }
  return result;
}

void put_refuted_last(Explanation* explanation, ExploredRepairs* explored) {
  std::vector<explain::Repair>& repairs = explanation->repairs.repairs;
  if (explored->repairs.size() != repairs.size()) {
    return;
  }
  const auto is_refuted = [](const explain::Repair& repair, const ExploredRepair& tried) {
    return both_verified(repair, &tried) == std::optional(false);
  };
  std::vector<std::pair<explain::Repair, ExploredRepair>> both;
  for (size_t i = 0; i < repairs.size(); ++i) {
    both.emplace_back(std::move(repairs[i]), std::move(explored->repairs[i]));
  }
  std::stable_partition(both.begin(), both.end(),
                        [&](const auto& one) { return !is_refuted(one.first, one.second); });
  for (size_t i = 0; i < both.size(); ++i) {
    repairs[i] = std::move(both[i].first);
    explored->repairs[i] = std::move(both[i].second);
    const bool same = i > 0 && repairs[i].forbids == repairs[i - 1].forbids &&
                      is_refuted(repairs[i], explored->repairs[i]) ==
                          is_refuted(repairs[i - 1], explored->repairs[i - 1]);
    repairs[i].rank = i == 0 ? 1 : repairs[i - 1].rank + (same ? 0 : 1);
  }
}

}  // namespace tsomon
