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

void print_json(FILE* file, const nlohmann::ordered_json& object) {
  fmt::print(file, "{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void print_found(const Found& found, const ReportOutput& output) {
  if (output.format == OutputFormat::kJson) {
    print_json(output.file, found.json());
  } else {
    fmt::print(output.file, "{}\n", found.text());
  }
  std::fflush(output.file);
}

void print_watch_summary(const std::string& name, const std::string& property,
                         const WatchSummary& summary, const ReportOutput& output,
                         const nlohmann::ordered_json& more) {
  FILE* const file = output.file;
  if (output.format == OutputFormat::kJson) {
    nlohmann::ordered_json object = {{"file", name},
                                     {"events", summary.events},
                                     {"threads", summary.threads},
                                     {"units", summary.detector.units},
                                     {"property", property},
                                     {"verdict", verdict_text(summary.verdict())},
                                     {"complete", summary.complete()},
                                     {"violations", summary.found.all()},
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
    return print_json(file, object);
  }
  fmt::print(file, "{}: {}: {}\n", name, property, verdict_text(summary.verdict()));
  fmt::print(file, "  events: {}, threads: {}, units: {}\n", summary.events, summary.threads,
             summary.detector.units);
  if (summary.selection.any()) {
    fmt::print(file, "  selection: {}\n", selection_text(summary.selection));
  }
  fmt::print(file, "  violations: {} ({} in all); windows searched: {}\n", summary.found.all(),
             summary.occurrences, summary.windows);
  if (!summary.complete()) {
    fmt::print(file, "  incomplete: {} events late, {} lost, {} windows not decided, {} given up\n",
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
