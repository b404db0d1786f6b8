#include "monitor/findings/reported_finding.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "monitor/findings/cycle_text.h"
#include "monitor/findings/event_text.h"
#include "monitor/findings/finding_summary.h"

namespace tsomon {
namespace {

// A finding, with the names of what it is about.
class FindingCycle {
 public:
  FindingCycle(const Finding& finding, const Symbols& symbols, const ReportNames& names,
               Property property, ListedAccesses listed)
      : finding_(finding),
        units_(finding.units),
        symbols_(symbols),
        names_(names),
        all_(listed == ListedAccesses::kAll) {
    cycle_.of_events = property == Property::kRobustness;
  }

  ReportedCycle make() {
    const Violation& violation = finding_.violation;
    for (size_t i = 0; i < violation.cycle.size(); ++i) {
      const size_t before = (i + violation.cycle.size() - 1) % violation.cycle.size();
      list(violation.cycle[i], violation.cycle[before].to);
    }
    number_accesses();
    for (size_t i = 0; i < violation.cycle.size(); ++i) {
      cycle_.steps.push_back(step(violation.cycle[i], listed_[i]));
    }
    if (names_.source) {
      for (const ReportedStep& step : cycle_.steps) {
        for (const size_t access : {step.from, step.to}) {
          cycle_.accesses[access].source = names_.source(cycle_.accesses[access].place);
        }
      }
    }
    for (const Step& step : violation.witness) {
      cycle_.witness.push_back({access_.at(step.event), step.commit});
    }
    for (const uint32_t e : violation.slice) {
      const bool on_cycle =
          std::any_of(violation.cycle.begin(), violation.cycle.end(), [&](const CycleEdge& edge) {
            return cycle_.of_events ? edge.from == e : edge.unit == units_.of_event(e);
          });
      if (!on_cycle) {
        cycle_.others.push_back(access_.at(e));
      }
    }
    return std::move(cycle_);
  }

 private:
  struct Listed {
    std::vector<uint32_t> events;  // that are shown
    uint64_t omitted = 0;
    std::vector<std::string> locations;
  };

  // Of many the first ones, and the two that the cycle goes through.
  void list(const CycleEdge& edge, uint32_t entered) {
    Listed listed;
    std::unordered_set<std::string> seen;
    const auto add = [&](uint32_t e) {
      const std::string location = symbols_.location_text(finding_.events.events[e].location);
      if (!location.empty() && seen.insert(location).second) {
        listed.locations.push_back(location);
      }
      if (listed.events.size() < ReportedCycle::kMaxAccesses || e == edge.from || e == entered) {
        listed.events.push_back(e);
      } else {
        ++listed.omitted;
      }
    };
    if (cycle_.of_events) {
      add(edge.from);
    } else if (!all_) {
      add(std::min(entered, edge.from));
      if (entered != edge.from) {
        add(std::max(entered, edge.from));
      }
    } else {
      const Unit& unit = units_[edge.unit];
      for (uint32_t e = unit.first_event; e <= unit.last_event; ++e) {
        if (units_.of_event(e) == edge.unit && is(finding_.events.events[e], kinds::kNodes)) {
          add(e);
        }
      }
    }
    listed_.push_back(std::move(listed));
  }

  // Everything that is shown, in the order of the trace.
  void number_accesses() {
    const Violation& violation = finding_.violation;
    std::set<uint32_t> wanted(violation.slice.begin(), violation.slice.end());
    for (const Step& step : violation.witness) {
      wanted.insert(step.event);
    }
    for (size_t i = 0; i < violation.cycle.size(); ++i) {
      const CycleEdge& edge = violation.cycle[i];
      wanted.insert({edge.from, edge.to});
      wanted.insert(listed_[i].events.begin(), listed_[i].events.end());
    }
    for (const uint32_t e : wanted) {
      const Event& event = finding_.events.events[e];
      access_[e] = cycle_.accesses.size();
      cycle_.accesses.push_back(reported_access(finding_.index[e], event, symbols_, names_));
      add_values(finding_.events, event, &cycle_.accesses.back());
      add_stamps(finding_.events, event, &cycle_.accesses.back());
    }
  }

  void name_calls(const Unit& unit, ReportedAccess* access) const {
    const Event& begin = finding_.events.events[unit.first_event];
    access->calls = access->place.more_callers;
    if (names_.calls && names_.place && begin.kind() == EventKind::kUnitBegin &&
        access->calls.empty()) {
      const SourcePlace place = names_.place(symbols_.location_text(begin.location));
      if (place.pc != 0 && access->place.pc != 0) {
        access->calls = names_.calls(place, access->place);
      }
    }
  }

  ReportedStep step(const CycleEdge& edge, const Listed& listed) {
    const Unit& unit = units_[edge.unit];
    ReportedStep step;
    step.thread = thread_text(unit.thread, symbols_);
    if (unit.label < symbols_.labels.size()) {
      step.label = unit_label(symbols_.labels.text(unit.label));
    }
    step.is_unit = unit.label != Interner::kNone;
    step.finished = unit.finished;
    step.first = finding_.index[cycle_.of_events ? edge.from : unit.first_event];
    step.last = finding_.index[cycle_.of_events ? edge.from : unit.last_event];
    for (const uint32_t e : listed.events) {
      step.accesses.push_back(access_.at(e));
      name_calls(unit, &cycle_.accesses[access_.at(e)]);
    }
    step.omitted = listed.omitted;
    step.locations = listed.locations;
    step.from = access_.at(edge.from);
    step.to = access_.at(edge.to);
    step.edge = edge.kind;
    return step;
  }

  const Finding& finding_;
  const UnitTable& units_;
  const Symbols& symbols_;
  const ReportNames& names_;
  const bool all_;
  ReportedCycle cycle_;
  std::vector<Listed> listed_;         // for each step
  std::map<uint32_t, size_t> access_;  // of an event, in cycle_.accesses
};

}  // namespace

ReportedFinding reported(const Finding& finding, Property property, const Symbols& symbols,
                         const ReportNames& names, ListedAccesses listed) {
  ReportedFinding result;
  result.property = property;
  result.verdict = verdict_of(finding);
  result.cycle = FindingCycle(finding, symbols, names, property, listed).make();
  return result;
}

std::string unfenced_text(const std::vector<ReportedFence>& unfenced, const std::string& indent) {
  std::string out;
  for (const ReportedFence& unit : unfenced) {
    if (!unit.line.empty()) {
      out += fmt::format("{}  {}\n", indent, unit.line);
    }
  }
  return out.empty() ? out : indent + "units whose stores may commit after their end:\n" + out;
}

nlohmann::ordered_json ReportedFinding::json() const {
  nlohmann::ordered_json object = {{"violation", number},
                                   {"property", property_name(property)},
                                   {"verdict", verdict_name(verdict)}};
  add_to(&object);
  return object;
}

std::string ReportedFinding::text(const TextShape& shape) const {
  return fmt::format("violation {} ({}, {}): {}\n  {}\n{}{}", number, verdict_name(verdict),
                     property_name(property), size_text(), summary_text(cycle), like_text(),
                     body(shape));
}

std::string ReportedFinding::size_text() const {
  return fmt::format("cycle of {} {}", cycle.steps.size(), cycle.of_events ? "events" : "units");
}

std::string ReportedFinding::like_text() const {
  return like == 0
             ? std::string()
             : fmt::format("  as violation {}: the same part of a unit is interrupted\n", like);
}

std::string ReportedFinding::body(const TextShape& shape) const {
  std::string out = cycle_text(cycle, shape) + witness_text(cycle, shape);
  if (!repair.empty()) {
    out += fmt::format("  would rule it out: {}\n", repair);
  }
  if (shape.verbose) {
    out += fmt::format("  fingerprint: {}\n", fingerprint(cycle));
  }
  return out + unfenced_text(unfenced, "  ");
}

void ReportedFinding::add_to(nlohmann::ordered_json* object) const {
  add_cycle_json(cycle, object);
  if (!repair.empty()) {
    (*object)["repair"] = repair;
  }
  if (!unfenced.empty()) {
    auto& units = (*object)["unfenced_units"] = nlohmann::ordered_json::array();
    for (const ReportedFence& unit : unfenced) {
      units.push_back(unit.json);
    }
  }
}

std::string key_of(const ReportedCycle& cycle) {
  std::vector<std::string> steps;
  const size_t size = cycle.steps.size();
  steps.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    const ReportedStep& step = cycle.steps[i];
    const ReportedStep& before = cycle.steps[(i + size - 1) % size];
    steps.push_back(fmt::format("{}|{}|{}", step.label, cycle.accesses[before.to].place.text,
                                cycle.accesses[step.from].place.text));
  }
  std::rotate(steps.begin(), std::min_element(steps.begin(), steps.end()), steps.end());
  return fmt::format("{}", fmt::join(steps, "\n"));
}

}  // namespace tsomon
