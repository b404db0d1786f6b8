#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "monitor/explain/explain_line.h"
#include "monitor/findings/reported_finding.h"
#include "monitor/judge/check.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

class Report {
 public:
  Report(const std::string& input, const Symbols& symbols, const CheckReport& report,
         const ReportChoice& choice)
      : input_(input),
        symbols_(symbols),
        report_(report),
        choice_(choice),
        hidden_(choice.hidden != nullptr ? *choice.hidden : nothing_hidden_) {}

  nlohmann::ordered_json json() {
    nlohmann::ordered_json object = {{"file", input_},
                                     {"events", report_.events},
                                     {"threads", report_.threads},
                                     {"units", report_.units},
                                     {"property", property_name(report_.property)},
                                     {"verdict", report_.verdict_name()},
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
    const std::vector<nlohmann::ordered_json> marks = marked();
    if (!report_.findings.empty()) {
      in_words(report_.findings[first_shown(marks)], true).add_to(&object);
    }
    hidden_.add_to(&object);
    if (choice_.all) {
      object["findings"] = findings_json(marks);
    }
    if (!report_.unfenced.empty()) {
      auto& units = object["unfenced_units"] = nlohmann::ordered_json::array();
      for (const ReportedFence& unit : unfenced()) {
        units.push_back(unit.json);
      }
    }
    if (report_.coverage) {
      object["coverage"] = coverage_json(*report_.coverage);
    }
    if (!report_.notes.empty()) {
      object["notes"] = notes();
    }
    object["groups_searched"] = report_.components;
    if (report_.basis) {
      object["rests_on"] = basis_json(*report_.basis);
    }
    if (const auto shortfalls = report_.shortfalls(); !shortfalls.empty()) {
      object["shortfalls"] = shortfalls_json(shortfalls);
    }
    return object;
  }

  std::string text() {
    std::string out =
        fmt::format("{}: {}: {}\n", printable(input_), property_name(report_.property), headline());
    out += fmt::format("  events: {}, threads: {}, units: {}; groups of units searched: {}\n",
                       report_.events, report_.threads, report_.units, report_.components);
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
    const std::vector<nlohmann::ordered_json> marks = marked();
    if (const std::string hidden = hidden_.text(); !hidden.empty()) {
      out += fmt::format("  {}\n", hidden);
    }
    size_t shown = 0;
    for (size_t i = 0; i < findings.size() && (choice_.all || shown == 0); ++i) {
      if (is_hidden(marks[i])) {
        continue;
      }
      ++shown;
      out += fmt::format("\nviolation {} of {} ({}):\n", i + 1, report_.violations(),
                         verdict_name(verdict_of(findings[i])));
      const ReportedFinding words = in_words(findings[i], shown <= kMostExplained);
      out += fmt::format("  {}:\n{}", words.size_text(), words.body());
    }
    const std::string fences = unfenced_text(unfenced());
    return fences.empty() ? out : out + "\n" + fences;
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
    return report_.verdict_name();
  }

  static constexpr size_t kMostExplained = 8;

  ReportedFinding in_words(const Finding& finding, bool explained) const {
    ReportedFinding words =
        reported(finding, report_.property, symbols_, choice_.names, ListedAccesses::kAll);
    if (explained) {
      words.repair = repair_line(finding, symbols_, choice_.names, report_.property);
    }
    return words;
  }

  // Of each finding what says whether it is hidden.
  std::vector<nlohmann::ordered_json> marked() {
    std::vector<nlohmann::ordered_json> marks;
    for (const Finding& each : report_.findings) {
      auto& mark = marks.emplace_back(nlohmann::ordered_json::object());
      if (hidden_.asked()) {
        hidden_.mark(places_of(reported(each, report_.property, symbols_, choice_.names,
                                        ListedAccesses::kOnCycle)
                                   .cycle),
                     &mark);
      }
    }
    hidden_.show(report_.more.all());
    return marks;
  }

  static bool is_hidden(const nlohmann::ordered_json& mark) {
    return mark.contains("suppressed_by");
  }

  static size_t first_shown(const std::vector<nlohmann::ordered_json>& marks) {
    const auto shown = std::find_if_not(marks.begin(), marks.end(), is_hidden);
    return shown == marks.end() ? 0 : static_cast<size_t>(shown - marks.begin());
  }

  nlohmann::ordered_json findings_json(const std::vector<nlohmann::ordered_json>& marks) const {
    auto findings = nlohmann::ordered_json::array();
    for (const Finding& each : report_.findings) {
      nlohmann::ordered_json object = {{"verdict", verdict_name(verdict_of(each))}};
      in_words(each, findings.size() < kMostExplained).add_to(&object);
      object.update(marks[findings.size()]);
      findings.push_back(std::move(object));
    }
    return findings;
  }

  std::vector<ReportedFence> unfenced() const {
    return reported(report_.unfenced, symbols_, choice_.names);
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
  HiddenFindings nothing_hidden_;
  HiddenFindings& hidden_;
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
