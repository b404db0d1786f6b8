#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "monitor/explain/explain_line.h"
#include "monitor/findings/event_text.h"
#include "monitor/findings/reported_cycle.h"
#include "monitor/judge/check.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

// A finding, with the names of what it is about.
class FindingCycle {
 public:
  FindingCycle(const CheckFinding& finding, const Symbols& symbols, const ReportNames& names,
               CheckProperty property)
      : finding_(finding), units_(finding.units), symbols_(symbols), names_(names) {
    cycle_.of_events = property == CheckProperty::kRobustness;
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
    for (const Step& step : violation.witness) {
      cycle_.witness.push_back({access_.at(step.event), step.commit});
    }
    for (const uint32_t e : violation.window) {
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
    std::set<uint32_t> wanted(violation.window.begin(), violation.window.end());
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
    }
  }

  ReportedStep step(const CycleEdge& edge, const Listed& listed) const {
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
    }
    step.omitted = listed.omitted;
    step.locations = listed.locations;
    step.from = access_.at(edge.from);
    step.to = access_.at(edge.to);
    step.edge = edge.kind;
    return step;
  }

  const CheckFinding& finding_;
  const UnitTable& units_;
  const Symbols& symbols_;
  const ReportNames& names_;
  ReportedCycle cycle_;
  std::vector<Listed> listed_;         // for each step
  std::map<uint32_t, size_t> access_;  // of an event, in cycle_.accesses
};

class Report {
 public:
  Report(const std::string& input, const Symbols& symbols, const CheckReport& report,
         const ReportChoice& choice)
      : input_(input), symbols_(symbols), report_(report), choice_(choice) {}

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json object = {{"file", input_},
                                     {"events", report_.events},
                                     {"threads", report_.threads},
                                     {"units", report_.units},
                                     {"property", property_name(report_.property)},
                                     {"verdict", verdict_name(report_)},
                                     {"complete", report_.complete()}};
    if (report_.selection.any()) {
      object["selection"] = report_.selection.names();
    }
    if (report_.lost_events != 0) {
      object["lost_events"] = report_.lost_events;
    }
    if (report_.violations() > 0) {
      object["violations"] = report_.violations();
    }
    if (!report_.findings.empty()) {
      add_cycle_json(cycle_of(report_.findings.front()), &object);
      if (const std::string repair = repair_of(report_.findings.front()); !repair.empty()) {
        object["repair"] = repair;
      }
    }
    if (choice_.all) {
      object["findings"] = findings_json();
    }
    if (!report_.unfenced.empty()) {
      object["unfenced_units"] = unfenced_json();
    }
    if (report_.coverage) {
      object["coverage"] = coverage_json(*report_.coverage);
    }
    if (!report_.notes.empty()) {
      object["notes"] = notes();
    }
    object["groups_searched"] = report_.parts;
    if (report_.basis) {
      object["rests_on"] = basis_json(*report_.basis);
    }
    if (const auto shortfalls = report_.shortfalls(); !shortfalls.empty()) {
      object["shortfalls"] = shortfalls_json(shortfalls);
    }
    return object;
  }

  std::string text() const {
    std::string out =
        fmt::format("{}: {}: {}\n", printable(input_), property_name(report_.property), headline());
    out += fmt::format("  events: {}, threads: {}, units: {}; groups of units searched: {}\n",
                       report_.events, report_.threads, report_.units, report_.parts);
    if (report_.basis && report_.violations() == 0) {
      out += fmt::format("  {}\n", basis_text(*report_.basis));
    }
    if (report_.selection.any()) {
      out += fmt::format("  selection: {}\n", selection_text(report_.selection));
    }
    for (const Shortfall& shortfall : report_.shortfalls()) {
      out += shortfall_lines(shortfall);
    }
    for (const std::string& note : notes()) {
      out += fmt::format("  note: {}\n", printable(note));
    }
    const auto& findings = report_.findings;
    const size_t shown = choice_.all ? findings.size() : std::min<size_t>(1, findings.size());
    for (size_t i = 0; i < shown; ++i) {
      const ReportedCycle cycle = cycle_of(findings[i]);
      out += fmt::format("\nviolation {} of {} ({}):\n", i + 1, report_.violations(),
                         verdict_of(findings[i]));
      out += fmt::format("  cycle of {} {}:\n", cycle.steps.size(),
                         cycle.of_events ? "events" : "units");
      out += cycle_text(cycle) + witness_text(cycle);
      if (i < kMostExplained) {
        out += repair_text(findings[i]);
      }
    }
    return out + unfenced_text();
  }

 private:
  std::string headline() const {
    switch (report_.verdict()) {
      case Verdict::kDefinite:
        return fmt::format("DEFINITE violation (every execution of this trace; {} in all)",
                           report_.violations());
      case Verdict::kPossible:
        return fmt::format("POSSIBLE violation (some executions of this trace; {} in all)",
                           report_.violations());
      case Verdict::kInconclusive:
        return "inconclusive";
      case Verdict::kClean:
        break;
    }
    return verdict_name(report_);
  }

  ReportedCycle cycle_of(const CheckFinding& finding) const {
    return FindingCycle(finding, symbols_, choice_.names, report_.property).make();
  }

  static constexpr size_t kMostExplained = 8;

  std::string repair_of(const CheckFinding& finding) const {
    return repair_line(finding, symbols_, choice_.names, report_.property);
  }
  std::string repair_text(const CheckFinding& finding) const {
    const std::string repair = repair_of(finding);
    return repair.empty() ? repair : fmt::format("  would rule it out: {}\n", repair);
  }

  static const char* verdict_of(const CheckFinding& finding) {
    return finding.violation.verdict == Verdict::kDefinite ? "definite" : "possible";
  }

  nlohmann::ordered_json findings_json() const {
    auto findings = nlohmann::ordered_json::array();
    for (const CheckFinding& each : report_.findings) {
      nlohmann::ordered_json object = {{"verdict", verdict_of(each)}};
      add_cycle_json(cycle_of(each), &object);
      findings.push_back(std::move(object));
    }
    return findings;
  }

  nlohmann::ordered_json unfenced_json() const {
    auto units = nlohmann::ordered_json::array();
    for (const FenceAdvice& advice : report_.unfenced) {
      units.push_back(fence_advice_json(advice, symbols_, choice_.names));
    }
    return units;
  }

  std::string unfenced_text() const {
    if (report_.unfenced.empty()) {
      return {};
    }
    std::string out = "\nunits whose stores may commit after their end:\n";
    for (const FenceAdvice& advice : report_.unfenced) {
      out += fmt::format("  {}\n", fence_advice_line(advice, symbols_, choice_.names));
    }
    return out;
  }

  // Each reason once, with how often.
  std::vector<std::string> notes() const {
    std::vector<std::string> order;
    std::map<std::string, int> count;
    for (const std::string& note : report_.notes) {
      if (count[note]++ == 0) {
        order.push_back(note);
      }
    }
    for (std::string& note : order) {
      if (count[note] > 1) {
        note += fmt::format(" ({} times)", count[note]);
      }
    }
    return order;
  }

  const std::string& input_;
  const Symbols& symbols_;
  const CheckReport& report_;
  const ReportChoice& choice_;
};

}  // namespace

nlohmann::ordered_json report_json(const std::string& input, const Symbols& symbols,
                                   const CheckReport& report, const ReportChoice& choice) {
  return Report(input, symbols, report, choice).json();
}

std::string report_text(const std::string& input, const Symbols& symbols, const CheckReport& report,
                        const ReportChoice& choice) {
  return Report(input, symbols, report, choice).text();
}

}  // namespace tsomon
