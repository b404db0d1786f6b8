#include <ostream>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

constexpr const char* kStyle = R"(
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #1b1f24; background: #fff }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin: 0; display: inline }
table { border-collapse: collapse; margin: .7em 0 } th, td { border: 1px solid #d0d7de; padding: .25em .6em; text-align: left; vertical-align: top }
th { background: #f6f8fa } td.step { font-family: ui-monospace, monospace; font-size: .9em } td.commit { background: #fff8e5 }
.place { color: #57606a } details { border: 1px solid #d0d7de; border-radius: 6px; padding: .6em 1em; margin: .8em 0 }
summary { cursor: pointer } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
.definite, .explored { color: #b3261e } .predicted { color: #8250df } .possible { color: #9a6700 }
@media (prefers-color-scheme: dark) { body { color: #d8dee4; background: #14181d } th { background: #1f252c } th, td, details { border-color: #39424c }
td.commit { background: #33290f } .place { color: #9aa5b1 } .definite, .explored { color: #ff8a80 } .predicted { color: #c8a6ff } .possible { color: #e3b341 } }
)";

std::string place_html(const Place& place) {
  if (place.text.empty() && place.file.empty()) {
    return {};
  }
  const std::string full =
      place.line != 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
  return fmt::format("<span class=\"place\" title=\"{}\">{}</span>", markup(full),
                     markup(place.text.empty() ? full : place.text));
}

// So many columns without anything in them.
std::string gap_html(size_t columns) {
  return columns == 0 ? "" : fmt::format("<td colspan=\"{}\"></td>", columns);
}

// A row for each step, a column for each thread.
std::string steps_html(const Finding& finding) {
  if (finding.accesses.empty()) {
    return {};
  }
  const Threads threads(finding);
  std::string html = "<table><tr>";
  for (const std::string& thread : threads.names()) {
    html += "<th>" + markup(thread) + "</th>";
  }
  html += "</tr>\n";
  for (const Step& step : steps_of(finding)) {
    const Access& access = *finding.access(step.event);
    const size_t column = threads.number(access.thread);
    html += fmt::format("<tr>{}<td class=\"step{}\">{}<br>{}", gap_html(column),
                        step.commit ? " commit" : "", markup(step_text(access, step)),
                        place_html(access.place));
    for (const Place& call : access.called_from) {
      html += " &lt; " + place_html(call);
    }
    html += "</td>" + gap_html(threads.names().size() - column - 1) + "</tr>\n";
  }
  return html + "</table>\n";
}

std::string cycle_html(const Finding& finding) {
  if (finding.cycle.empty()) {
    return {};
  }
  std::string html =
      "<p>Each of these comes before the next one, and the last one before the first:</p><ol>\n";
  for (const Unit& unit : finding.cycle) {
    const std::string label = !unit.is_unit ? "access" : unit.label.empty() ? "unit" : unit.label;
    html += fmt::format("<li>{} of {} (#{} to #{}): #{} before #{}, {}</li>\n", markup(label),
                        markup(unit.thread), unit.first, unit.last, unit.from, unit.to,
                        markup(unit.reason));
  }
  return html + "</ol>\n";
}

std::string finding_html(size_t number, const Finding& finding) {
  std::string html = fmt::format(
      "<details id=\"f{}\"{}><summary><h2>{}. <span class=\"{}\">{}</span> {}</h2>{}</summary>\n"
      "<p>{}</p>\n",
      number, number <= 20 ? " open" : "", number,
      finding.certain() ? markup(finding.verdict) : "possible", markup(finding.verdict),
      markup(finding.headline), finding.times > 1 ? fmt::format(" ({} times)", finding.times) : "",
      markup(rule_of(finding.rule).help));
  html += cycle_html(finding);
  html += steps_html(finding);
  const auto paragraph = [&](const char* what, const std::string& content) {
    if (!content.empty()) {
      html += fmt::format("<p>{}: <code>{}</code></p>\n", what, markup(content));
    }
  };
  for (const Place& place : finding.places) {
    html += "<p>" + place_html(place) + "</p>\n";
  }
  for (const std::string& detail : finding.details) {
    html += "<p>" + markup(detail) + "</p>\n";
  }
  paragraph("What would rule it out", finding.repair);
  paragraph("Replay", finding.replay);
  paragraph("Found in", fmt::format("{}", fmt::join(finding.inputs, ", ")));
  paragraph("Fingerprint", finding.fingerprint);
  return html + "</details>\n";
}

std::string judged_html(const Judged& judged) {
  std::string notes;
  for (const std::string& note : judged.notes) {
    notes += (notes.empty() ? "" : "<br>") + markup(note);
  }
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      markup(judged.name), markup(judged.tool), markup(judged.question),
      judged.verdict.empty() ? "not judged" : markup(judged.verdict),
      judged.complete ? "yes" : "no", notes);
}

}  // namespace

void write_html(const Results& results, std::ostream& out) {
  const size_t count = results.findings().size();
  out << fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>tsomon: {} finding{}</title><style>{}</style></head><body>\n<h1>tsomon: {} "
      "finding{}</h1>\n",
      count, count == 1 ? "" : "s", kStyle, count, count == 1 ? "" : "s");
  out << "<table><tr><th>input</th><th>tool</th><th>question</th><th>verdict</th><th>complete</"
         "th><th>notes</th></tr>\n";
  for (const Judged& judged : results.judged()) {
    out << judged_html(judged);
  }
  out << "</table>\n";
  for (const std::string& problem : results.problems()) {
    out << "<p>" + markup(problem) + "</p>\n";
  }
  size_t number = 0;
  for (const Finding& finding : results.findings()) {
    out << finding_html(++number, finding);
  }
  out << "</body></html>\n";
}

}  // namespace tsomon::report
