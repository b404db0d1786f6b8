#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "monitor/explain/explain_line.h"
#include "monitor/findings/finding_summary.h"
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
    const std::vector<Told> told = all_told();
    if (report_.violations() > 0) {
      object["violations"] = report_.violations();
    }
    auto findings = findings_json(told);
    if (!told.empty()) {
      const auto first = std::find_if_not(told.begin(), told.end(), is_hidden);
      const size_t at = first == told.end() ? 0 : static_cast<size_t>(first - told.begin());
      for (const char* const key : {"cycle", "witness", "accesses", "fingerprint", "repair"}) {
        if (findings[at].contains(key)) {
          object[key] = findings[at][key];
        }
      }
    }
    hidden_.add_to(&object);
    object["findings"] = std::move(findings);
    if (const uint64_t unplaced = report_.more.all(); unplaced > 0) {
      object["not_told"] = unplaced;
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
    const bool verbose = choice_.shape.verbose;
    if (report_.basis && (report_.violations() == 0 || verbose)) {
      out += fmt::format("  {}\n", basis_text(*report_.basis));
    }
    if (verbose && report_.lost_events != 0) {
      out += fmt::format("  not seen: {} lost events\n", report_.lost_events);
    }
    if (verbose && report_.coverage) {
      out += fmt::format("  {}\n", coverage_text(*report_.coverage));
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
    const std::vector<Told> told = all_told();
    if (const std::string hidden = hidden_.text(); !hidden.empty()) {
      out += fmt::format("  {}\n", hidden);
    }
    std::string summary;
    TornParts torn;
    for (size_t i = 0; i < told.size(); ++i) {
      const Told& one = told[i];
      if (is_hidden(one)) {
        continue;
      }
      out += fmt::format("\nviolation {} of {} ({}{}):\n", i + 1, told.size(),
                         verdict_name(one.verdict()), times_text(one));
      ReportedFinding words = in_words(one);
      words.like = torn.first_like(words.cycle, i + 1);
      out += fmt::format("  {}\n{}  {}:\n{}", summary_text(words.cycle), words.like_text(),
                         words.size_text(), words.body(choice_.shape));
      if (summary.empty()) {
        summary = summary_line(verdict_name(one.verdict()), words.cycle);
      }
    }
    if (const uint64_t more = report_.more.all(); more > 0 && !told.empty()) {
      out += fmt::format("\n{} more, whose places were not looked at\n", more);
    }
    const std::string fences = unfenced_text(unfenced());
    out += fences.empty() ? "" : "\n" + fences;
    return summary.empty() ? out : out + fmt::format("\n{}\n", summary);
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

  // Violations with one fingerprint; of --all a single one.
  struct Told {
    const Finding* shown = nullptr;  // the gravest, of equal ones the first
    std::string fingerprint;
    Violations found;
    bool undecided = false;  // whether one of them is definite
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    nlohmann::ordered_json mark = nlohmann::ordered_json::object();  // whether it is hidden
    std::string repair;                                              // of the first that are not

    Verdict verdict() const { return found.definite > 0 ? Verdict::kDefinite : Verdict::kPossible; }
    void add(const Finding& finding) {
      if (shown == nullptr || verdict_of(finding) > verdict_of(*shown)) {
        shown = &finding;
      }
      found.add(violations_of(finding));
      undecided = undecided || !finding.violation.complete;
      const Repeats& repeats = finding.violation.repeats;
      first = std::min({first, begin_of(finding), repeats.first});
      last = std::max({last, begin_of(finding), repeats.last});
    }
  };
  static bool is_hidden(const Told& told) { return told.mark.contains("suppressed_by"); }

  // Those that are definite first, then as they begin.
  std::vector<Told> all_told() {
    std::vector<Told> told;
    std::map<std::string, size_t> known;
    std::vector<FindingPlaces> places;
    for (const Finding& finding : report_.findings) {
      FindingPlaces of = places_of(
          reported(finding, report_.property, symbols_, choice_.names, ListedAccesses::kOnCycle)
              .cycle);
      const auto [at, is_new] = known.try_emplace(of.fingerprint, told.size());
      if (is_new || choice_.all) {
        at->second = told.size();
        told.emplace_back().fingerprint = of.fingerprint;
        places.push_back(std::move(of));
      }
      told[at->second].add(finding);
    }
    for (size_t i = 0; i < told.size(); ++i) {
      hidden_.mark(places[i], &told[i].mark, told[i].found.all());
    }
    hidden_.show(report_.more.all());
    std::stable_sort(told.begin(), told.end(), [](const Told& a, const Told& b) {
      return std::pair(b.verdict(), a.first) < std::pair(a.verdict(), b.first);
    });
    add_repairs(&told);
    return told;
  }

  void add_repairs(std::vector<Told>* told) const {
    std::vector<Told*> explained;
    std::vector<const Finding*> findings;
    for (Told& one : *told) {
      if (!is_hidden(one) && explained.size() < kMostExplained) {
        explained.push_back(&one);
        findings.push_back(one.shown);
      }
    }
    const bool others = told->size() > explained.size() || report_.more.all() > 0;
    std::vector<std::string> repairs =
        repair_lines(report_, findings, others, symbols_, choice_.names);
    for (size_t i = 0; i < explained.size(); ++i) {
      explained[i]->repair = std::move(repairs[i]);
    }
  }

  ReportedFinding in_words(const Told& told) const {
    ReportedFinding words =
        reported(*told.shown, report_.property, symbols_, choice_.names, ListedAccesses::kAll);
    words.repair = told.repair;
    return words;
  }

  static std::string times_text(const Told& told) {
    return told.found.all() == 1 ? std::string()
                                 : fmt::format(", {} times, the first at #{}, the last at #{}",
                                               told.found.all(), told.first, told.last);
  }

  nlohmann::ordered_json findings_json(const std::vector<Told>& told) const {
    auto findings = nlohmann::ordered_json::array();
    for (const Told& one : told) {
      nlohmann::ordered_json object = {{"verdict", verdict_name(one.verdict())},
                                       {"count", one.found.all()},
                                       {"first", one.first},
                                       {"last", one.last},
                                       {"definite", nullptr}};
      if (one.found.definite > 0 || !one.undecided) {
        object["definite"] = one.found.definite > 0;
      }
      in_words(one).add_to(&object);
      object.update(one.mark);
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
