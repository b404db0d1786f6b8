#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "monitor/check.h"
#include "monitor/event_text.h"

namespace tsomon {
const char* edge_name(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kProgramOrder:
      return "program-order";
    case EdgeKind::kConflict:
      return "conflict";
    case EdgeKind::kValues:
      return "implied";
    case EdgeKind::kReordering:
      return "reordering";
    case EdgeKind::kThread:
      return "thread";
    case EdgeKind::kOverlap:
      return "overlap";
  }
  return "";
}

namespace {

const char* edge_reason(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kProgramOrder:
      return "program order";
    case EdgeKind::kConflict:
      return "conflict, in the order of the trace";
    case EdgeKind::kValues:
      return "conflict, in the order that the recorded values and stamps leave";
    case EdgeKind::kReordering:
      return "conflict, in an order that the store buffers allow";
    case EdgeKind::kThread:
      return "thread start or end";
    case EdgeKind::kOverlap:
      return "conflict of overlapping intervals, in the order in which they begin";
  }
  return "";
}

// The events of one finding, with what is needed to name them.
class FindingText {
 public:
  FindingText(const CheckFinding& finding, const Symbols& symbols, CheckProperty property)
      : finding_(finding),
        trace_(finding.events),
        symbols_(symbols),
        per_event_(property == CheckProperty::kRobustness),
        units_(finding.units) {}

  nlohmann::ordered_json cycle_json() const {
    auto cycle = nlohmann::ordered_json::array();
    for (const CycleEdge& edge : finding_.violation.cycle) {
      cycle.push_back(node_json(edge));
    }
    return cycle;
  }

  std::string thread_name(ThreadId thread) const {
    return std::string(symbols_.threads.text(thread));
  }

  std::string label(UnitId unit) const {
    const uint32_t id = units_[unit].label;
    return id == Interner::kNone || id >= symbols_.labels.size()
               ? std::string()
               : std::string(unit_label(symbols_.labels.text(id)));
  }

  nlohmann::ordered_json node_json(const CycleEdge& edge) const {
    const Unit& unit = units_[edge.unit];
    nlohmann::ordered_json object = {{"thread", thread_name(unit.thread)},
                                     {"label", label(edge.unit)},
                                     {"first", index(per_event_ ? edge.from : unit.first_event)},
                                     {"last", index(per_event_ ? edge.from : unit.last_event)}};
    object["locations"] = nlohmann::ordered_json::array();
    for (const std::string& location : locations(edge)) {
      object["locations"].push_back(location);
    }
    object["edge"] = edge_name(edge.kind);
    object["from"] = index(edge.from);
    object["to"] = index(edge.to);
    return object;
  }

  // Source locations of the unit's accesses, each once, in order.
  std::vector<std::string> locations(const CycleEdge& edge) const {
    std::vector<std::string> result;
    const auto add = [&](uint32_t e) {
      const std::string text = symbols_.location_text(trace_.events[e].location);
      if (!text.empty() && std::find(result.begin(), result.end(), text) == result.end()) {
        result.push_back(text);
      }
    };
    if (per_event_) {
      add(edge.from);
      return result;
    }
    const Unit& unit = units_[edge.unit];
    for (uint32_t e = unit.first_event; e <= unit.last_event; ++e) {
      if (units_.of_event(e) == edge.unit && is(trace_.events[e], kinds::kNodes)) {
        add(e);
      }
    }
    return result;
  }

  nlohmann::ordered_json witness_json() const {
    if (finding_.violation.witness.empty()) {
      return nullptr;
    }
    auto steps = nlohmann::ordered_json::array();
    for (const Step& step : finding_.violation.witness) {
      steps.push_back({{step.commit ? "commit" : "issue", index(step.event)}});
    }
    return steps;
  }

  std::string operation(uint32_t e) const { return event_text(trace_, symbols_, e); }

  std::string event_line(uint32_t e) const {
    const std::string location = symbols_.location_text(trace_.events[e].location);
    return location.empty() ? fmt::format("#{:<6} {}", index(e), operation(e))
                            : fmt::format("#{:<6} {:<34} {}", index(e), operation(e), location);
  }

  std::string unit_text(const CycleEdge& edge) const {
    const Unit& unit = units_[edge.unit];
    const std::string name = label(edge.unit);
    if (per_event_) {
      return fmt::format("{}{}", thread_name(unit.thread), name.empty() ? "" : " in " + name);
    }
    if (unit.label == Interner::kNone) {
      return fmt::format("{} event #{}, a unit of its own", thread_name(unit.thread),
                         index(unit.first_event));
    }
    return fmt::format("{} unit {} (events #{} to #{}{})", thread_name(unit.thread),
                       name.empty() ? "without a label" : name, index(unit.first_event),
                       index(unit.last_event), unit.finished ? "" : ", unfinished");
  }

  std::string cycle_text() const {
    const Violation& finding = finding_.violation;
    std::string out =
        fmt::format("  cycle of {} {}:\n", finding.cycle.size(), per_event_ ? "events" : "units");
    for (size_t i = 0; i < finding.cycle.size(); ++i) {
      const CycleEdge& edge = finding.cycle[i];
      out += fmt::format("  [{}] {}\n", i + 1, unit_text(edge));
      if (per_event_) {
        out += "        " + event_line(edge.from) + "\n";
      } else {
        const Unit& unit = units_[edge.unit];
        size_t listed = 0;
        for (uint32_t e = unit.first_event; e <= unit.last_event; ++e) {
          if (units_.of_event(e) != edge.unit || !is(trace_.events[e], kinds::kNodes)) {
            continue;
          }
          if (++listed > kMaxListed) {
            out += "        ...\n";
            break;
          }
          out += "        " + event_line(e) + "\n";
        }
      }
      out += fmt::format("      before [{}]: #{} before #{} ({})\n",
                         (i + 1) % finding.cycle.size() + 1, index(edge.from), index(edge.to),
                         edge_reason(edge.kind));
    }
    return out;
  }

  // One column for each thread, the memory in the middle.
  std::string witness_text() const {
    const std::vector<Step>& witness = finding_.violation.witness;
    if (witness.empty()) {
      return {};
    }
    std::vector<ThreadId> threads(witness.size());
    std::transform(witness.begin(), witness.end(), threads.begin(),
                   [&](const Step& step) { return trace_.events[step.event].thread; });
    std::sort(threads.begin(), threads.end());
    threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
    const size_t memory = (threads.size() + 1) / 2;
    std::vector<std::string> titles(threads.size());
    std::transform(threads.begin(), threads.end(), titles.begin(),
                   [&](ThreadId thread) { return thread_name(thread); });
    titles.insert(titles.begin() + static_cast<ptrdiff_t>(memory), "memory");
    std::vector<std::vector<std::string>> rows = {titles};
    std::map<ThreadId, uint32_t> last_issued;
    for (const Step& step : witness) {
      const ThreadId thread = trace_.events[step.event].thread;
      const auto place = static_cast<size_t>(
          std::lower_bound(threads.begin(), threads.end(), thread) - threads.begin());
      rows.emplace_back(titles.size());
      if (step.commit) {
        const bool late = last_issued[thread] != step.event;
        rows.back()[memory] =
            fmt::format("#{} {}{}", index(step.event), stored(step.event), late ? ", late" : "");
      } else {
        last_issued[thread] = step.event;
        rows.back()[place + (place < memory ? 0 : 1)] =
            fmt::format("#{} {}", index(step.event), operation(step.event));
      }
    }
    std::string out = "  witness, an execution with its commits:\n";
    std::vector<size_t> widths(titles.size(), 0);
    for (const auto& row : rows) {
      for (size_t column = 0; column < widths.size(); ++column) {
        widths[column] = std::max(widths[column], row[column].size());
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string line = i == 0 ? std::string(4, ' ') : fmt::format("{:>4}", i);
      for (size_t column = 0; column < titles.size(); ++column) {
        line += fmt::format("  {:<{}}", rows[i][column], widths[column]);
      }
      out += "  " + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out + others_text();
  }

 private:
  // What a commit writes.
  std::string stored(uint32_t e) const {
    const bool lock = is(trace_.events[e], kinds::kLocks);
    const auto value = lock ? std::nullopt : trace_.write_value(trace_.events[e]);
    return symbols_.access_text(trace_.events[e]) + (value ? fmt::format(" := {}", *value) : "");
  }

  // Where the events of the witness are that no unit of the cycle has listed.
  std::string others_text() const {
    std::string out;
    for (const uint32_t e : finding_.violation.window) {
      const auto& cycle = finding_.violation.cycle;
      const bool listed = std::any_of(cycle.begin(), cycle.end(), [&](const CycleEdge& edge) {
        return per_event_ ? edge.from == e : edge.unit == units_.of_event(e);
      });
      if (!listed) {
        out += fmt::format("  not of the cycle: {} {}\n", thread_name(trace_.events[e].thread),
                           event_line(e));
      }
    }
    return out;
  }

  uint64_t index(uint32_t e) const { return finding_.index[e]; }

  static constexpr size_t kMaxListed = 40;

  const CheckFinding& finding_;
  const Trace& trace_;
  const Symbols& symbols_;
  bool per_event_;
  const UnitTable& units_;
};

class Report {
 public:
  Report(const std::string& input, const Symbols& symbols, const CheckReport& report)
      : input_(input), symbols_(symbols), report_(report) {}

  nlohmann::ordered_json json(bool all) const {
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
      const FindingText finding(report_.findings.front(), symbols_, report_.property);
      object["cycle"] = finding.cycle_json();
      object["witness"] = finding.witness_json();
    }
    if (all) {
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
    return object;
  }

  std::string text(bool all) const {
    std::string out =
        fmt::format("{}: {}: {}\n", input_, property_name(report_.property), headline());
    out += fmt::format("  events: {}, threads: {}, units: {}; groups of units searched: {}\n",
                       report_.events, report_.threads, report_.units, report_.parts);
    if (report_.selection.any()) {
      out += fmt::format("  selection: {}\n", selection_text(report_.selection));
    }
    for (const std::string& note : notes()) {
      out += fmt::format("  note: {}\n", note);
    }
    const auto& findings = report_.findings;
    const size_t shown = all ? findings.size() : std::min<size_t>(1, findings.size());
    for (size_t i = 0; i < shown; ++i) {
      const FindingText finding(findings[i], symbols_, report_.property);
      out += fmt::format("\nviolation {} of {} ({}):\n", i + 1, report_.violations(),
                         verdict_of(findings[i]));
      out += finding.cycle_text();
      out += finding.witness_text();
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

  static const char* verdict_of(const CheckFinding& finding) {
    return finding.violation.verdict == Verdict::kDefinite ? "definite" : "possible";
  }

  nlohmann::ordered_json findings_json() const {
    auto findings = nlohmann::ordered_json::array();
    for (const CheckFinding& each : report_.findings) {
      const FindingText finding(each, symbols_, report_.property);
      findings.push_back({{"verdict", verdict_of(each)},
                          {"cycle", finding.cycle_json()},
                          {"witness", finding.witness_json()}});
    }
    return findings;
  }

  nlohmann::ordered_json unfenced_json() const {
    auto units = nlohmann::ordered_json::array();
    for (const FenceAdvice& advice : report_.unfenced) {
      units.push_back(fence_advice_json(advice, symbols_, location_of(advice)));
    }
    return units;
  }

  std::string location_of(const FenceAdvice& advice) const {
    return symbols_.location_text(advice.store.location);
  }

  std::string unfenced_text() const {
    if (report_.unfenced.empty()) {
      return {};
    }
    std::string out = "\nunits whose stores may commit after their end:\n";
    for (const FenceAdvice& advice : report_.unfenced) {
      out += fmt::format("  {}\n", fence_advice_line(advice, symbols_, location_of(advice)));
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
};

}  // namespace

nlohmann::ordered_json report_json(const std::string& input, const Symbols& symbols,
                                   const CheckReport& report, bool all) {
  return Report(input, symbols, report).json(all);
}

std::string report_text(const std::string& input, const Symbols& symbols, const CheckReport& report,
                        bool all) {
  return Report(input, symbols, report).text(all);
}

}  // namespace tsomon
