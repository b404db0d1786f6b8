#include "tools/watch_report.h"

#include <cstdio>

#include "monitor/check.h"
#include "tools/command.h"

namespace tsomon {
namespace {

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean:
      return "serializable";
    case Verdict::kPossible:
      return "possible";
    case Verdict::kDefinite:
      return "definite";
    case Verdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

}  // namespace

void print_json(const nlohmann::ordered_json& object) {
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::fflush(stdout);
}

void print_found(const Found& found, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    print_json(found.json());
  } else {
    fmt::print("{}\n", found.text());
    std::fflush(stdout);
  }
}

void print_watch_summary(const std::string& name, const std::string& property,
                         const WatchSummary& summary, OutputFormat format,
                         const nlohmann::ordered_json& more) {
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json object = {{"file", name},
                                     {"events", summary.events},
                                     {"threads", summary.threads},
                                     {"units", summary.detector.units},
                                     {"property", property},
                                     {"verdict", verdict_text(summary.verdict)},
                                     {"complete", summary.complete},
                                     {"violations", summary.findings},
                                     {"occurrences", summary.occurrences},
                                     {"windows", summary.windows},
                                     {"undecided_windows", summary.unjudged},
                                     {"given_up", summary.detector.forced},
                                     {"late_events", summary.detector.late_events},
                                     {"lost_events", summary.lost_events}};
    if (summary.selection.any()) {
      object["selection"] = summary.selection.names();
    }
    object.update(more);
    return print_json(object);
  }
  fmt::print("{}: {}: {}\n", name, property, verdict_text(summary.verdict));
  fmt::print("  events: {}, threads: {}, units: {}\n", summary.events, summary.threads,
             summary.detector.units);
  if (summary.selection.any()) {
    fmt::print("  selection: {}\n", selection_text(summary.selection));
  }
  fmt::print("  violations: {} ({} in all); windows searched: {}\n", summary.findings,
             summary.occurrences, summary.windows);
  if (!summary.complete) {
    fmt::print("  incomplete: {} events late, {} lost, {} windows not decided, {} given up\n",
               summary.detector.late_events, summary.lost_events, summary.unjudged,
               summary.detector.forced);
  }
}

int watch_exit_status(Verdict verdict) {
  switch (verdict) {
    case Verdict::kClean:
      return kExitClean;
    case Verdict::kInconclusive:
      return kExitInconclusive;
    default:
      return kExitViolation;
  }
}

}  // namespace tsomon
