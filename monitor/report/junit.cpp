#include <ostream>
#include <string>

#include <fmt/format.h>

#include "monitor/report/render.h"

namespace tsomon::report {
namespace {

// Nothing was found, and that is all that can be said.
bool is_open(const Judged& judged) {
  return judged.findings == 0 && (!judged.complete || judged.verdict == "inconclusive");
}

std::string notes_of(const Judged& judged) {
  return fmt::format("{}", fmt::join(judged.notes, "\n"));
}

void write_judged(const Judged& judged, std::ostream& out) {
  out << fmt::format("  <testcase classname=\"{}\" name=\"{}: {}\"", markup(judged.tool),
                     markup(judged.name), markup(judged.question));
  const auto put = [&](const char* element, const std::string& message) {
    out << fmt::format("><{0} message=\"{1}\">{2}</{0}></testcase>\n", element, markup(message),
                       markup(notes_of(judged)));
  };
  if (judged.verdict.empty()) {
    put("error", "not judged");
  } else if (judged.findings != 0) {
    put("failure", fmt::format("{}: {} found", judged.verdict, judged.findings));
  } else if (is_open(judged)) {
    put("skipped", judged.verdict + (judged.complete ? "" : ", not complete"));
  } else {
    out << "/>\n";
  }
}

void write_finding(const Finding& finding, std::ostream& out) {
  out << fmt::format(
      "  <testcase classname=\"{}\" name=\"{}{}\"", markup(finding.rule), markup(finding.headline),
      finding.fingerprint.empty() ? "" : fmt::format(" {}", markup(finding.fingerprint)));
  if (const Place* const place = finding.place(); place != nullptr && !place->file.empty()) {
    out << fmt::format(" file=\"{}\" line=\"{}\"", markup(place->file), place->line);
  }
  out << fmt::format("><failure type=\"{0}\" message=\"{0}: {1}\">", markup(finding.verdict),
                     markup(finding.headline));
  const auto line = [&](const std::string& text) { out << markup(text) << '\n'; };
  for (const Step& step : steps_of(finding)) {
    const Access& access = *finding.access(step.event);
    line(fmt::format("{} {} {}", access.thread, step_text(access, step), access.place.text));
  }
  for (const Place& place : finding.places) {
    line("at " + place.text);
  }
  for (const std::string& detail : finding.details) {
    line(detail);
  }
  if (!finding.repair.empty()) {
    line("repair: " + finding.repair);
  }
  if (!finding.replay.empty()) {
    line("replay: " + finding.replay);
  }
  line(fmt::format("{}in {}", finding.times == 1 ? "" : fmt::format("{} times, ", finding.times),
                   fmt::join(finding.inputs, ", ")));
  out << "</failure></testcase>\n";
}

}  // namespace

void write_junit(const Results& results, std::ostream& out) {
  size_t failures = 0;
  size_t errors = 0;
  size_t skipped = 0;
  for (const Judged& judged : results.judged()) {
    errors += judged.verdict.empty() ? 1 : 0;
    failures += !judged.verdict.empty() && judged.findings != 0 ? 1 : 0;
    skipped += !judged.verdict.empty() && is_open(judged) ? 1 : 0;
  }
  const size_t found = results.findings().size();
  const size_t problems = results.problems().size();
  out << fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"tsomon\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
      results.judged().size() + problems + found, failures + found, errors + problems, skipped);
  out << fmt::format(
      " <testsuite name=\"inputs\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
      results.judged().size() + problems, failures, errors + problems, skipped);
  for (const Judged& judged : results.judged()) {
    write_judged(judged, out);
  }
  for (const std::string& problem : results.problems()) {
    out << fmt::format(
        "  <testcase classname=\"tsomon report\" name=\"input\"><error "
        "message=\"{}\"/></testcase>\n",
        markup(problem));
  }
  out << fmt::format(
      " </testsuite>\n <testsuite name=\"findings\" tests=\"{0}\" failures=\"{0}\">\n", found);
  for (const Finding& finding : results.findings()) {
    write_finding(finding, out);
  }
  out << " </testsuite>\n</testsuites>\n";
}

}  // namespace tsomon::report
