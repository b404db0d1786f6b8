#include "monitor/explain/explain_line.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "decoders/std/reader.h"
#include "monitor/explain/explain.h"
#include "monitor/judge/check_parts.h"
#include "offline/explain/repairs.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

std::string fences_line(const explain::Repair& repair, const Finding& finding,
                        const Symbols& symbols, const ReportNames& names) {
  std::vector<std::string> places;
  for (const explain::FencePlace& fence : repair.fences) {
    const ReportedAccess access = reported_access(
        finding.index[fence.after], finding.events.events[fence.after], symbols, names);
    places.push_back(
        fmt::format("after #{} store {}{}{}", access.index,
                    printable(access.variable.empty() ? access.operand : access.variable),
                    access.place.text.empty() ? "" : " ", printable(access.place.text)));
  }
  return fmt::format("a fence {}", fmt::join(places, " and "));
}

std::string block_line(const explain::BlockPlace& block, const Finding& finding,
                       const ReportNames& names) {
  const auto place = [&](const std::string& location) {
    return printable(names.place && !location.empty() ? names.place(location).text : location);
  };
  const std::string from = place(block.first_location);
  const std::string to = place(block.last_location);
  return fmt::format("unit {} atomic from {} to {} (#{} to #{})", printable(block.method), from, to,
                     finding.index[block.found.first], finding.index[block.found.last]);
}

std::string best_repair(const Finding& finding, const Symbols& symbols, const ReportNames& names,
                        Property property) {
  if (finding.violation.cycle.empty() || finding.events.events.size() > kMostEventsExplained ||
      (property != Property::kSerializability && property != Property::kRobustness &&
       property != Property::kScSerializability)) {
    return {};
  }
  Trace trace = finding.events;
  trace.symbols = symbols;
  const UnitTable units(trace);
  std::vector<CycleEdge> cycle = finding.violation.cycle;
  for (CycleEdge& edge : cycle) {
    edge.unit = units.of_event(edge.from);
  }
  explain::RepairOptions how;
  how.analysis.property = searched_as(property);
  how.max_repairs = 4;
  WorkMeter meter({.max_work = kMostWorkExplained});
  const WorkScope scope(&meter);
  const explain::Repairs repairs =
      explain::find_repairs({{&trace, {std::move(cycle)}, places_of(names)}}, {}, how);
  for (const explain::Repair& repair : repairs.repairs) {
    if (repair.verified != std::optional(true)) {
      continue;
    }
    if (!repair.fences.empty()) {
      return fences_line(repair, finding, symbols, names);
    }
    std::vector<std::string> blocks;
    for (const explain::BlockPlace& block : repair.blocks) {
      blocks.push_back(block_line(block, finding, names));
    }
    return fmt::format("{}", fmt::join(blocks, " and "));
  }
  return {};
}

}  // namespace

std::string repair_line(const Finding& finding, const Symbols& symbols, const ReportNames& names,
                        Property property) {
  try {
    return best_repair(finding, symbols, names, property);
  } catch (const WorkEnded&) {
    return {};  // the finding stands without it
  }
}

std::string repair_line(const std::string& trace, Property property) {
  const auto read = read_std_text(trace, "execution");
  if (!read || read->events.size() > kMostEventsExplained) {
    return {};
  }
  CheckOptions how;
  how.property = property;
  how.analysis.max_findings = 1;
  try {
    const auto report = check_trace(*read, how);
    return !report || report->findings.empty()
               ? std::string()
               : repair_line(report->findings.front(), read->symbols, {}, property);
  } catch (const WorkEnded&) {
    return {};
  }
}

}  // namespace tsomon
