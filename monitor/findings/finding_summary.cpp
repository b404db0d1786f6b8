#include "monitor/findings/finding_summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tso/support/printable.h"

namespace tsomon {
namespace {

// "load of balance"
std::string operation_name(const ReportedAccess& access) {
  const std::string_view operation = access.operation;
  const std::string& name = access.variable.empty() ? access.operand : access.variable;
  return fmt::format("{}{}{}{}", operation, operation == "locked" ? " operation" : "",
                     name.empty() ? "" : " of ", printable(name));
}

// "load of balance (withdraw bank.cpp:12)"
std::string access_name(const ReportedAccess& access) {
  const std::string& place = access.place.text;
  return operation_name(access) + (place.empty() ? "" : fmt::format(" ({})", printable(place)));
}

std::string unit_name(const ReportedCycle& cycle, const ReportedStep& step) {
  const std::string thread = printable(step.thread);
  if (!step.is_unit) {
    return fmt::format("{}'s {}", thread, operation_name(cycle.accesses[step.from]));
  }
  return step.label.empty() ? fmt::format("a unit of {}", thread)
                            : fmt::format("{}'s unit {}", thread, printable(step.label));
}

std::string of_events(const ReportedCycle& cycle) {
  for (const ReportedStep& step : cycle.steps) {
    const ReportedAccess& from = cycle.accesses[step.from];
    const ReportedAccess& to = cycle.accesses[step.to];
    if (step.edge == EdgeKind::kProgramOrder && from.kind == EventKind::kWrite &&
        to.kind == EventKind::kRead) {
      return fmt::format("{}'s {} was still in its store buffer at its {}", printable(from.thread),
                         access_name(from), access_name(to));
    }
  }
  return "sequential consistency has no such execution";
}

// The first store of the witness that commits after its thread has gone on.
std::string late_text(const ReportedCycle& cycle) {
  std::map<ThreadId, size_t> last_issued;
  for (const ReportedCycle::WitnessStep& step : cycle.witness) {
    const ReportedAccess& access = cycle.accesses[step.access];
    size_t& last = last_issued[access.thread_id];
    if (step.commit && last != step.access) {
      return fmt::format(": {}'s {} commits late", printable(access.thread), access_name(access));
    }
    last = step.commit ? last : step.access;
  }
  return {};
}

// By which access the unit is entered.
size_t entered(const ReportedCycle& cycle, size_t step) {
  const size_t size = cycle.steps.size();
  return cycle.steps[(step + size - 1) % size].to;
}

// The cycle leaves the unit by an earlier access than it comes back to.
bool is_torn(const ReportedCycle& cycle, size_t step) {
  return cycle.steps[step].is_unit && cycle.steps[step].from < entered(cycle, step);
}

}  // namespace

std::string summary_text(const ReportedCycle& cycle) {
  if (cycle.of_events || cycle.steps.empty()) {
    return of_events(cycle);
  }
  const size_t size = cycle.steps.size();
  size_t torn = size;
  for (size_t i = 0; i < size && torn == size; ++i) {
    torn = is_torn(cycle, i) ? i : size;
  }
  if (torn == size) {
    return fmt::format(
        "{} and {} come each before the other{}", unit_name(cycle, cycle.steps.front()),
        size == 2 ? unit_name(cycle, cycle.steps.back()) : fmt::format("{} others", size - 1),
        late_text(cycle));
  }
  const ReportedStep& step = cycle.steps[torn];
  const std::string first = access_name(cycle.accesses[step.from]);
  const std::string second = access_name(cycle.accesses[entered(cycle, torn)]);
  std::string between = unit_name(cycle, cycle.steps[(torn + 1) % size]);
  if (size == 3) {
    between += " and " + unit_name(cycle, cycle.steps[(torn + 2) % size]);
  } else if (size > 3) {
    between += fmt::format(" and {} more", size - 2);
  }
  return fmt::format("{} is not atomic: {} {} between its {} and its {}", unit_name(cycle, step),
                     between, size == 2 ? "comes" : "come", first, second);
}

std::string summary_line(const std::string& verdict, const ReportedCycle& cycle) {
  return fmt::format("SUMMARY: {}: {}; fingerprint {}", verdict, summary_text(cycle),
                     fingerprint(cycle));
}

uint64_t TornParts::first_like(const ReportedCycle& cycle, uint64_t number) {
  constexpr char kField = '\x1f';
  uint64_t first = number;
  for (size_t i = 0; i < cycle.steps.size() && !cycle.of_events; ++i) {
    const ReportedStep& step = cycle.steps[i];
    const std::string& from = cycle.accesses[step.from].place.text;
    const std::string& to = cycle.accesses[entered(cycle, i)].place.text;
    if (is_torn(cycle, i) && !from.empty() && !to.empty()) {
      const std::string part = fmt::format("{}{}{}{}{}", step.label, kField, from, kField, to);
      first = std::min(first, first_.try_emplace(part, number).first->second);
    }
  }
  return first == number ? 0 : first;
}

}  // namespace tsomon
