#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "monitor/check.h"

namespace tsomon {
namespace {

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
  }
  return "";
}

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
  }
  return "";
}

class Report {
 public:
  Report(const std::string& input, const Trace& trace, const CheckReport& report)
      : input_(input), trace_(trace), report_(report), units_(trace) {}

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json object = {{"file", input_},
                                     {"events", report_.events},
                                     {"threads", report_.threads},
                                     {"units", report_.analysis.units},
                                     {"property", property_name(report_.property)},
                                     {"verdict", verdict_name(report_)},
                                     {"complete", report_.analysis.complete}};
    if (trace_.lost_events != 0) {
      object["lost_events"] = trace_.lost_events;
    }
    if (report_.analysis.violated_parts > 0) {
      object["violations"] = report_.analysis.violated_parts;
    }
    if (!report_.analysis.findings.empty()) {
      const Violation& finding = report_.analysis.findings.front();
      object["cycle"] = nlohmann::ordered_json::array();
      for (const CycleEdge& edge : finding.cycle) {
        object["cycle"].push_back(node_json(edge));
      }
      object["witness"] = witness_json(finding);
    }
    if (!report_.analysis.notes.empty()) {
      object["notes"] = notes();
    }
    return object;
  }

  std::string text(bool all) const {
    std::string out =
        fmt::format("{}: {}: {}\n", input_, property_name(report_.property), headline());
    out += fmt::format("  events: {}, threads: {}, units: {}; groups of units searched: {}\n",
                       report_.events, report_.threads, report_.analysis.units,
                       report_.analysis.parts);
    for (const std::string& note : notes()) {
      out += fmt::format("  note: {}\n", note);
    }
    const auto& findings = report_.analysis.findings;
    const size_t shown = all ? findings.size() : std::min<size_t>(1, findings.size());
    for (size_t i = 0; i < shown; ++i) {
      out += fmt::format("\nviolation {} of {} ({}):\n", i + 1, report_.analysis.violated_parts,
                         findings[i].verdict == Verdict::kDefinite ? "definite" : "possible");
      out += cycle_text(findings[i]);
      out += witness_text(findings[i]);
    }
    return out;
  }

 private:
  std::string headline() const {
    const Analysis& analysis = report_.analysis;
    switch (analysis.verdict) {
      case Verdict::kDefinite:
        return fmt::format("DEFINITE violation (every execution of this trace; {} in all)",
                           analysis.violated_parts);
      case Verdict::kPossible:
        return fmt::format("POSSIBLE violation (some executions of this trace; {} in all)",
                           analysis.violated_parts);
      case Verdict::kInconclusive:
        return "inconclusive";
      case Verdict::kClean:
        break;
    }
    return verdict_name(report_);
  }

  // Each reason once, with how often.
  std::vector<std::string> notes() const {
    std::vector<std::string> order;
    std::map<std::string, int> count;
    for (const std::string& note : report_.analysis.notes) {
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

  std::string thread_name(ThreadId thread) const {
    return std::string(trace_.symbols.threads.text(thread));
  }

  std::string label(UnitId unit) const {
    const uint32_t id = units_[unit].label;
    return id == Interner::kNone || id >= trace_.symbols.labels.size()
               ? std::string()
               : std::string(unit_label(trace_.symbols.labels.text(id)));
  }

  bool per_event() const { return report_.property == CheckProperty::kRobustness; }

  nlohmann::ordered_json node_json(const CycleEdge& edge) const {
    const Unit& unit = units_[edge.unit];
    nlohmann::ordered_json object = {{"thread", thread_name(unit.thread)},
                                     {"label", label(edge.unit)},
                                     {"first", per_event() ? edge.from : unit.first_event},
                                     {"last", per_event() ? edge.from : unit.last_event}};
    object["locations"] = nlohmann::ordered_json::array();
    for (const std::string& location : locations(edge)) {
      object["locations"].push_back(location);
    }
    object["edge"] = edge_name(edge.kind);
    object["from"] = edge.from;
    object["to"] = edge.to;
    return object;
  }

  // Source locations of the unit's accesses, each once, in order.
  std::vector<std::string> locations(const CycleEdge& edge) const {
    std::vector<std::string> result;
    const auto add = [&](uint32_t e) {
      const std::string text = trace_.symbols.location_text(trace_.events[e].location);
      if (!text.empty() && std::find(result.begin(), result.end(), text) == result.end()) {
        result.push_back(text);
      }
    };
    if (per_event()) {
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

  nlohmann::ordered_json witness_json(const Violation& finding) const {
    if (finding.witness.empty()) {
      return nullptr;
    }
    auto steps = nlohmann::ordered_json::array();
    for (const Step& step : finding.witness) {
      steps.push_back({{step.commit ? "commit" : "issue", step.event}});
    }
    return steps;
  }

  std::string operation(uint32_t e) const {
    const Event& event = trace_.events[e];
    const auto value = [](const char* sign, std::optional<uint64_t> known) {
      return known ? fmt::format("{}{}", sign, *known) : std::string();
    };
    const std::string place = trace_.symbols.access_text(event);
    switch (event.kind()) {
      case EventKind::kRead:
        return "load " + place + value(" = ", trace_.read_value(event));
      case EventKind::kWrite:
        return "store " + place + value(" := ", trace_.write_value(event));
      case EventKind::kReadModifyWrite:
        return "locked " + place + value(" = ", trace_.read_value(event)) +
               value(" := ", trace_.write_value(event));
      case EventKind::kFence:
        return "fence";
      case EventKind::kAcquire:
        return "acquire " + place;
      case EventKind::kRelease:
        return "release " + place;
      case EventKind::kAcquireShared:
        return "acquire shared " + place;
      case EventKind::kReleaseShared:
        return "release shared " + place;
      case EventKind::kFork:
        return "start thread " + thread_name(static_cast<ThreadId>(event.address));
      case EventKind::kJoin:
        return "join thread " + thread_name(static_cast<ThreadId>(event.address));
      default:
        return "event";
    }
  }

  std::string event_line(uint32_t e) const {
    const std::string location = trace_.symbols.location_text(trace_.events[e].location);
    return location.empty() ? fmt::format("#{:<6} {}", e, operation(e))
                            : fmt::format("#{:<6} {:<34} {}", e, operation(e), location);
  }

  std::string unit_text(const CycleEdge& edge) const {
    const Unit& unit = units_[edge.unit];
    const std::string name = label(edge.unit);
    if (per_event()) {
      return fmt::format("{}{}", thread_name(unit.thread), name.empty() ? "" : " in " + name);
    }
    if (unit.label == Interner::kNone) {
      return fmt::format("{} event #{}, a unit of its own", thread_name(unit.thread),
                         unit.first_event);
    }
    return fmt::format("{} unit {} (events #{} to #{}{})", thread_name(unit.thread),
                       name.empty() ? "without a label" : name, unit.first_event, unit.last_event,
                       unit.finished ? "" : ", unfinished");
  }

  std::string cycle_text(const Violation& finding) const {
    std::string out =
        fmt::format("  cycle of {} {}:\n", finding.cycle.size(), per_event() ? "events" : "units");
    for (size_t i = 0; i < finding.cycle.size(); ++i) {
      const CycleEdge& edge = finding.cycle[i];
      out += fmt::format("  [{}] {}\n", i + 1, unit_text(edge));
      if (per_event()) {
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
                         (i + 1) % finding.cycle.size() + 1, edge.from, edge.to,
                         edge_reason(edge.kind));
    }
    return out;
  }

  std::string witness_text(const Violation& finding) const {
    if (finding.witness.empty()) {
      return {};
    }
    std::string out = "  witness, an execution with its commits:\n";
    std::map<uint32_t, size_t> issued;
    std::map<ThreadId, size_t> last_issue;
    for (size_t i = 0; i < finding.witness.size(); ++i) {
      if (!finding.witness[i].commit) {
        issued[finding.witness[i].event] = i;
      }
    }
    for (size_t i = 0; i < finding.witness.size(); ++i) {
      const Step& step = finding.witness[i];
      const ThreadId thread = trace_.events[step.event].thread;
      if (!step.commit) {
        last_issue[thread] = i;
        out +=
            fmt::format("  {:>4}  {:<8} {}\n", i + 1, thread_name(thread), event_line(step.event));
      } else {
        const bool late = last_issue[thread] != issued[step.event];
        out += fmt::format(
            "  {:>4}  {:<8} {}\n", i + 1, "memory",
            fmt::format("#{:<6} commit of {}{}", step.event, operation(step.event),
                        late ? fmt::format("   <-- late, {} went on", thread_name(thread)) : ""));
      }
    }
    return out;
  }

  static constexpr size_t kMaxListed = 40;

  const std::string& input_;
  const Trace& trace_;
  const CheckReport& report_;
  UnitTable units_;
};

}  // namespace

nlohmann::ordered_json report_json(const std::string& input, const Trace& trace,
                                   const CheckReport& report) {
  return Report(input, trace, report).json();
}

std::string report_text(const std::string& input, const Trace& trace, const CheckReport& report,
                        bool all) {
  return Report(input, trace, report).text(all);
}

}  // namespace tsomon
