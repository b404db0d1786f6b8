#include "monitor/explain/explain.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "monitor/events/places.h"
#include "monitor/input/load.h"
#include "monitor/input/open_events.h"
#include "monitor/judge/check_parts.h"
#include "monitor/judge/losses.h"
#include "tso/model/idle_iterations.h"
#include "tso/model/lifetimes.h"

namespace tsomon {
namespace {

// "function file.cpp:123", as locations of traces that were made from a program have it.
explain::CodePlace place_in(const std::string& location) {
  explain::CodePlace found;
  const size_t colon = location.rfind(':');
  const size_t space = location.rfind(' ', colon);
  if (colon == std::string::npos || space == std::string::npos || space == 0 ||
      colon + 1 == location.size() || location.size() - colon > 9 ||
      location.find_first_not_of("0123456789", colon + 1) != std::string::npos) {
    return found;
  }
  found.function = location.substr(0, space);
  found.file = location.substr(space + 1, colon - space - 1);
  found.line = static_cast<uint32_t>(std::stoul(location.substr(colon + 1)));
  return found;
}

}  // namespace

explain::PlaceOf places_of(const ReportNames& names) {
  return [place = names.place](const std::string& location) {
    explain::CodePlace found;
    if (!location.empty() && location.size() < 10 &&
        location.find_first_not_of("0123456789") == std::string::npos) {
      found.line = static_cast<uint32_t>(std::stoul(location));
    } else if (place) {
      const SourcePlace source = place(location);
      found.function = source.function;
      found.file = source.file;
      found.line = source.line > 0 ? static_cast<uint32_t>(source.line) : 0;
    }
    return found.line == 0 ? place_in(location) : found;
  };
}

namespace {

// The cycles of the findings, in events and units of the trace.
std::vector<std::vector<CycleEdge>> cycles_of(const ExplainedInput& input) {
  const UnitTable units(input.trace);
  std::vector<std::vector<CycleEdge>> cycles;
  for (const Finding& finding : input.report.findings) {
    if (finding.violation.cycle.empty()) {
      continue;
    }
    std::vector<CycleEdge>& cycle = cycles.emplace_back(finding.violation.cycle);
    for (CycleEdge& edge : cycle) {
      edge.from = static_cast<uint32_t>(finding.index[edge.from]);
      edge.to = static_cast<uint32_t>(finding.index[edge.to]);
      edge.unit = units.of_event(edge.from);
    }
  }
  return cycles;
}

Result<void> check(ExplainedInput* input, const ExplainOptions& options) {
  CheckOptions how = options.check;
  how.source = input->basis;
  how.analysis.values = how.analysis.values && !input->trace.sampled;  // of whoever is not seen
  Result<CheckReport> report = CheckReport();
  try {
    report = check_trace(input->trace, how);
  } catch (const WorkEnded& ended) {
    const WorkPause outside;
    report->property = how.property;
    report->missing(limit_text(ended.limit()));
  }
  if (!report) {
    Error error = report.error();
    error.input = input->input;
    return tl::unexpected<Error>(std::move(error));
  }
  input->report = std::move(*report);
  if (input->damage != Damage::kNone) {
    leave_out_what_losses_may_rule_out(input->damage, input->trace.symbols, how.sets,
                                       &input->report);
  }
  if (input->trace.sampled) {
    keep_what_is_certain("a sample of the accesses", how.analysis.relation, &input->report);
  }
  if (!input->nothing_counts.empty()) {
    keep_nothing(input->nothing_counts, &input->report);
  }
  keep_nothing_clean(input->other_writers, &input->report);
  for (const std::string& note : input->notes) {
    input->report.missing(note);
  }
  return {};
}

}  // namespace

uint64_t Explanation::violations() const {
  uint64_t all = 0;
  for (const ExplainedInput& input : violating) {
    all += input.report.violations();
  }
  return all;
}

bool Explanation::complete() const {
  return repairs.notes.complete() &&
         std::all_of(violating.begin(), violating.end(),
                     [](const ExplainedInput& input) {
                       return input.report.complete() && input.report.more.all() == 0;
                     }) &&
         std::all_of(passing.begin(), passing.end(),
                     [](const ExplainedInput& input) { return input.notes.empty(); });
}

Result<ExplainedInput> read_for_explaining(const std::string& file, const ExplainOptions& options) {
  SourceOptions how;
  how.format = options.format;
  how.order = EventOrder::kInput;
  how.symbolise = true;
  how.files = options.files;
  auto opened = open_events(file, how);
  if (!opened) {
    return tl::unexpected<Error>(std::move(opened.error()));
  }
  EventSource& source = **opened;
  ExplainedInput input;
  input.file = file;
  input.input = source.input();
  auto trace = collect(source, ExplainOptions::kMaxEvents, &input.notes);
  if (!trace) {
    return tl::unexpected<Error>(std::move(trace.error()));
  }
  leave_out_waiting(*trace);
  if (options.check.property != Property::kAtomicSets) {
    follow_lifetimes(*trace);
  }
  input.trace = std::move(*trace);
  input.basis = source.basis();
  input.damage = source.damage();
  input.nothing_counts = source.nothing_counts();
  input.other_writers = source.other_writers();
  input.warnings = source.warnings();
  input.names = source.names();
  return input;
}

Result<Explanation> explain_inputs(std::vector<ExplainedInput> inputs,
                                   std::vector<ExplainedInput> passing,
                                   const ExplainOptions& options) {
  Explanation explanation;
  explanation.property = options.check.property;
  explanation.violating = std::move(inputs);
  explanation.passing = std::move(passing);
  std::vector<explain::ViolatingTrace> violating;
  for (ExplainedInput& input : explanation.violating) {
    if (auto checked = check(&input, options); !checked) {
      return tl::unexpected<Error>(checked.error());
    }
    const WorkPause outside;  // what was found is reported, whoever asks for a stop
    auto cycles = cycles_of(input);
    if (!cycles.empty()) {
      violating.push_back({&input.trace, std::move(cycles), places_of(input.names)});
    }
  }
  std::vector<explain::PassingTrace> without;
  for (const ExplainedInput& input : explanation.passing) {
    without.push_back({&input.trace, places_of(input.names)});
  }
  explain::RepairOptions how;
  how.analysis = options.check.analysis;
  how.analysis.property = searched_as(options.check.property);
  how.minimize = options.minimize;
  // There may be fences that were not seen.
  how.fences = std::none_of(explanation.violating.begin(), explanation.violating.end(),
                            [](const ExplainedInput& input) {
                              return input.trace.sampled || input.damage != Damage::kNone;
                            });
  WorkMeter meter(options.bounds);
  const WorkScope scope(&meter);
  explanation.repairs = explain::find_repairs(violating, without, how);
  return explanation;
}

}  // namespace tsomon
