#include "tools/watch_report.h"

#include <cstdio>

#include <fmt/format.h>

#include "monitor/explain/explain_line.h"
#include "monitor/judge/check.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/property_option.h"
#include "tso/support/printable.h"
#include "tso/support/work.h"

namespace tsomon {
void print_found(const ReportedFinding& found, const ReportOutput& output) {
  if (output.format == OutputFormat::kJson) {
    put_json(output.file, found.json(), output.tool);
  } else {
    put_lines(output.file, found.text() + "\n");
  }
}

void print_watch_summary(const std::string& name, const WatchSummary& summary,
                         const ReportOutput& output, const nlohmann::ordered_json& more) {
  FILE* const file = output.file;
  const char* const property = property_name(summary.property);
  if (output.format == OutputFormat::kJson) {
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
      object["deadlock"] = summary.deadlock.json();
    }
    object.update(more);
    return put_json(file, object, output.tool);
  }
  std::string out =
      summary.deadlock.any() ? fmt::format("{}: {}", printable(name), summary.deadlock.text()) : "";
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
  put_lines(file, out);
}

int watch_exit_status(const std::vector<WatchSummary>& summaries) {
  int status = kExitClean;
  for (const WatchSummary& summary : summaries) {
    if (summary.deadlock.any()) {
      return kExitViolation;
    }
    switch (summary.verdict()) {
      case Verdict::kPossible:
      case Verdict::kDefinite:
        return kExitViolation;
      case Verdict::kInconclusive:
        status = kExitInconclusive;
        break;
      case Verdict::kClean:
        break;
    }
  }
  return status;
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
