#include "tools/watch_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/explain/explain_line.h"
#include "monitor/judge/check.h"
#include "tools/findings_option.h"
#include "tools/output.h"
#include "tools/property_option.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
bool WatchReport::found(const ReportedFinding& found, const std::function<void()>& first) {
  nlohmann::ordered_json mark = nlohmann::ordered_json::object();
  const bool is_hidden = hidden(found.property).mark(places_of(found.cycle), &mark);
  if (!is_hidden) {
    first();
  }
  if (output_.format == OutputFormat::kJson) {
    nlohmann::ordered_json object = found.json();
    object.update(mark);
    put_json(output_.file, object, output_.tool);
  } else if (!is_hidden) {
    ReportedFinding told = found;
    told.like = torn_[found.property].first_like(found.cycle, found.number);
    put_lines(output_.file, told.text(output_.shape) + "\n");
    std::string& first = first_[found.property];
    if (first.empty() || (found.definite() && !first.starts_with("SUMMARY: definite"))) {
      first = summary_line(verdict_name(found.verdict), found.cycle);
    }
  }
  return !is_hidden;
}

namespace {

constexpr size_t kMostCounts = 16;  // lines

// Lists the findings that occurred more than once, the most frequent first.
std::string counts_text(std::vector<FindingCount> counts) {
  std::erase_if(counts, [](const FindingCount& each) { return each.count < 2; });
  std::stable_sort(counts.begin(), counts.end(),
                   [](const FindingCount& a, const FindingCount& b) { return a.count > b.count; });
  std::string out;
  for (size_t i = 0; i < std::min(counts.size(), kMostCounts); ++i) {
    out += fmt::format("    violation {}: {} times, the first at #{}, the last at #{}\n",
                       counts[i].number, counts[i].count, counts[i].first, counts[i].last);
  }
  if (counts.size() > kMostCounts) {
    out += fmt::format("    and {} more\n", counts.size() - kMostCounts);
  }
  return out;
}

}  // namespace

void WatchReport::summary(const std::string& name, const WatchSummary& summary,
                          const nlohmann::ordered_json& more) {
  HiddenFindings& hidden = this->hidden(summary.property);
  status_ = worse(status_, status_of(summary.verdict(), hidden, summary.complete()));
  HiddenFindings waiting(filter_);
  nlohmann::ordered_json deadlock;
  if (summary.deadlock.any()) {
    deadlock = summary.deadlock.json();
    const bool is_hidden = waiting.mark(summary.deadlock.places(), &deadlock);
    status_ = worse(status_, is_hidden ? kExitClean : kExitViolation);
  }
  FILE* const file = output_.file;
  const char* const property = property_name(summary.property);
  if (output_.format == OutputFormat::kJson) {
    nlohmann::ordered_json object = {{"file", name},
                                     {"events", summary.events},
                                     {"threads", summary.threads},
                                     {"units", summary.units},
                                     {"property", property},
                                     {"verdict", verdict_name(summary.verdict(), summary.property)},
                                     {"complete", summary.complete()},
                                     {"violations", summary.found.all()},
                                     {"occurrences", summary.occurrences},
                                     {"windows", summary.candidates},
                                     {"undecided_windows", summary.unjudged},
                                     {"given_up", summary.detector.evicted},
                                     {"late_events", summary.detector.late_events},
                                     {"lost_events", summary.lost_events}};
    if (summary.ended) {
      object["reason"] = limit_text(*summary.ended);
    }
    if (!summary.notes.empty()) {
      object["notes"] = std::vector<std::string>(summary.notes.begin(), summary.notes.end());
    }
    if (summary.basis.selection.any()) {
      object["selection"] = summary.basis.selection.names();
    }
    object["rests_on"] = basis_json(summary.basis);
    if (const auto shortfalls = summary.shortfalls(); !shortfalls.empty()) {
      object["shortfalls"] = shortfalls_json(shortfalls);
    }
    if (summary.deadlock.any()) {
      object["deadlock"] = std::move(deadlock);
    }
    object["findings"] = nlohmann::ordered_json::array();
    for (const FindingCount& each : summary.counts) {
      object["findings"].push_back({{"violation", each.number},
                                    {"fingerprint", each.fingerprint},
                                    {"definite", each.verdict == Verdict::kDefinite},
                                    {"count", each.count},
                                    {"first", each.first},
                                    {"last", each.last}});
    }
    hidden.add_to(&object);
    object.update(more);
    return put_json(file, object, output_.tool);
  }
  std::string out;
  if (summary.deadlock.any()) {
    out = fmt::format(
        "{}: {}", printable(name),
        waiting.all() ? "deadlock: " + waiting.text() + "\n\n" : summary.deadlock.text());
  }
  out += fmt::format("{}: {}: {}\n", printable(name), property,
                     verdict_name(summary.verdict(), summary.property));
  out += fmt::format("  events: {}, threads: {}, units: {}\n", summary.events, summary.threads,
                     summary.units);
  out += fmt::format("  {}\n", basis_text(summary.basis));
  if (summary.basis.selection.any()) {
    out += fmt::format("  selection: {}\n", selection_text(summary.basis.selection));
  }
  for (const Shortfall& shortfall : summary.shortfalls()) {
    out += shortfall_lines(shortfall);
  }
  out += fmt::format("  violations: {} ({} in all); candidates searched: {}\n", summary.found.all(),
                     summary.occurrences, summary.candidates);
  out += counts_text(summary.counts);
  if (const std::string left_out = hidden.text(); !left_out.empty()) {
    out += fmt::format("  {}\n", left_out);
  }
  if (!summary.complete()) {
    out += fmt::format(
        "  incomplete: {} events late, {} lost, {} candidates not decided, {} given up\n",
        summary.detector.late_events, summary.lost_events, summary.unjudged,
        summary.detector.evicted);
  }
  const std::string ended = summary.ended ? limit_text(*summary.ended) : "";
  for (const std::string& note : summary.notes) {
    out += note == ended ? fmt::format("  {}: not all was judged\n", note)
                         : fmt::format("  note: {}\n", note);
  }
  if (const std::string& first = first_[summary.property]; !first.empty()) {
    out += first + "\n";
  }
  put_lines(file, out);
}

std::vector<WatchOptions> watches_of(const std::vector<std::string>& names,
                                     const RelationOptions& relation, SetChoice sets) {
  std::vector<WatchOptions> watches;
  for (const std::string& name : each_once(names)) {
    WatchOptions& watch = watches.emplace_back();
    watch.detector.relation = relation;
    watch.ask(*property_named(name), sets);
    watch.repair = [](const Finding& finding, const Symbols& symbols, const ReportNames& names,
                      Property property) { return repair_line(finding, symbols, names, property); };
  }
  return watches;
}

}  // namespace tsomon
