// The page: what was judged, then the findings in groups, each with its pictures, source lines and facts.
#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>

#include "monitor/report/cycle_graph.h"
#include "monitor/report/decisions.h"
#include "monitor/report/diagram.h"
#include "monitor/report/excerpts.h"
#include "monitor/report/groups.h"
#include "monitor/report/page_parts.h"
#include "monitor/report/render.h"
#include "monitor/report/timeline.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

constexpr size_t kOpen = 20;            // groups that are open, with the first finding of each
constexpr size_t kMostText = 2'000;     // characters of a name, a note or a headline
constexpr size_t kMostReplay = 20'000;  // of a schedule
constexpr size_t kMostDetails = 200;    // lines of a finding
constexpr size_t kMostEdges = 40;       // of a cycle, as a list
constexpr size_t kMostJudged = 500;     // inputs
constexpr size_t kMostNotes = 20;       // of an input
constexpr size_t kPictureBytes =
    size_t{12} << 20;  // of the page: what follows has no pictures and source lines
constexpr size_t kPageBytes = size_t{18} << 20;  // what follows is not in it

// Of many findings each has less.
size_t rows_of_many(size_t findings) { return findings <= 100 ? 60 : findings <= 300 ? 32 : 14; }

const char* verdict_class(const Finding& finding) {
  for (const char* const known : {"definite", "explored", "predicted"}) {
    if (finding.verdict == known) {
      return known;
    }
  }
  return "possible";
}

std::string place_html(const Place& place) {
  if (place.text.empty() && place.file.empty()) {
    return {};
  }
  const std::string full =
      place.line != 0 ? fmt::format("{}:{}", place.file, place.line) : place.file;
  return fmt::format("<span class=\"place\" title=\"{}\">{}</span>", clipped(full, kMostText),
                     clipped(place.text.empty() ? full : place.text, kMostText));
}

std::string pictures_html(size_t number, const Finding& finding, size_t most_rows) {
  std::string html;
  const auto figure = [&](std::string_view caption, const std::string& svg) {
    if (!svg.empty()) {
      html += fmt::format(
          "<figure><figcaption>{}</figcaption><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"{}\">\n{}</div></figure>\n",
          caption, caption, svg);
    }
  };
  size_t picture = 0;
  for (const Diagram& diagram : diagrams_of(finding)) {
    figure(markup(diagram.title),
           diagram_svg(diagram, most_rows, fmt::format("f{}p{}", number, ++picture)));
  }
  figure(finding.cycle.empty() ? "Who waits for whom" : "The cycle",
         cycle_svg(finding, fmt::format("f{}c", number)));
  return html.empty() ? html : "<div class=\"pictures\">\n" + html + "</div>\n";
}

std::string cycle_html(const Finding& finding) {
  if (finding.cycle.empty()) {
    return {};
  }
  std::string html =
      "<h4>Why no order of the units explains it</h4>\n<p>Each unit comes before the next one, and "
      "the last one before the first:</p>\n<ol class=\"edges\">\n";
  for (size_t i = 0; i < finding.cycle.size(); ++i) {
    if (i == kMostEdges) {
      html += fmt::format("<li>... and {} more</li>\n", finding.cycle.size() - i);
      break;
    }
    const Unit& unit = finding.cycle[i];
    html += fmt::format("<li>{} ({}): {}</li>\n", clipped(unit_words(unit), kMostText),
                        unit.first == unit.last ? fmt::format("#{}", unit.first)
                                                : fmt::format("#{} to #{}", unit.first, unit.last),
                        clipped(edge_words(finding, unit), kMostText));
  }
  return html + "</ol>\n";
}

// Of each access once: where, and from where.
std::string accesses_html(const Finding& finding, size_t most_rows) {
  if (finding.accesses.empty() || !finding.waits.empty()) {
    return {};
  }
  std::string html =
      "<h4>Accesses</h4>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Accesses\"><table><tr><th scope=\"col\">thread</th><th "
      "scope=\"col\">access</th>"
      "<th scope=\"col\">where</th></tr>\n";
  for (size_t i = 0; i < finding.accesses.size(); ++i) {
    if (i == most_rows) {
      html += fmt::format("<tr><td colspan=\"3\">... and {} more</td></tr>\n",
                          finding.accesses.size() - i);
      break;
    }
    const Access& access = finding.accesses[i];
    html += fmt::format(
        "<tr><td>{}</td><td><code>{}</code></td><td>{}", clipped(access.thread, kMostText),
        clipped(step_text(access, {access.event, false}), kMostText), place_html(access.place));
    for (size_t call = 0; call < std::min<size_t>(access.called_from.size(), 8); ++call) {
      html += " &lt; " + place_html(access.called_from[call]);
    }
    html += "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

std::string waits_html(const Finding& finding) {
  if (finding.waits.empty()) {
    return {};
  }
  constexpr size_t kMostRows = 100;
  std::string html =
      "<table><tr><th scope=\"col\">thread</th><th scope=\"col\">holds</th><th "
      "scope=\"col\">waits for</th><th scope=\"col\">which is held by</th><th "
      "scope=\"col\">where it waits</th></tr>\n";
  for (size_t i = 0; i < finding.waits.size(); ++i) {
    if (i == kMostRows) {
      html += fmt::format("<tr><td colspan=\"5\">... and {} more</td></tr>\n",
                          finding.waits.size() - i);
      break;
    }
    const Wait& wait = finding.waits[i];
    std::string holds;
    for (size_t lock = 0; lock < std::min<size_t>(wait.holds.size(), 20); ++lock) {
      holds += (holds.empty() ? "" : "<br>") + clipped(wait.holds[lock], kMostText);
    }
    std::string by = clipped(wait.held_by, kMostText);
    if (!wait.held_since.empty()) {
      by += (by.empty() ? "" : " since ") + clipped(wait.held_since, kMostText);
    }
    html += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>#{} {}"
        "</td></tr>\n",
        clipped(wait.thread, kMostText), holds, clipped(wait.for_what, kMostText), by, wait.event,
        place_html(wait.place));
  }
  return html + "</table>\n";
}

std::string facts_html(const Finding& finding) {
  std::string html = "<dl class=\"facts\">\n";
  const auto fact = [&](const char* what, const std::string& content, size_t most = kMostText) {
    if (!content.empty()) {
      html += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", what, clipped(content, most));
    }
  };
  for (size_t i = 0; i < std::min<size_t>(finding.places.size(), kMostDetails); ++i) {
    html += "<dt>At</dt><dd>" + place_html(finding.places[i]) + "</dd>\n";
  }
  fact("Would rule it out", finding.repair);
  fact("Replay", finding.replay, kMostReplay);
  fact("Found in", fmt::format("{}", fmt::join(finding.inputs, ", ")));
  fact("Fingerprint", finding.fingerprint);
  return html + "</dl>\n";
}

std::string details_html(const Finding& finding) {
  std::string html;
  // What the table of a deadlock says is not said again.
  const size_t first = finding.verdict == "definite" ? finding.waits.size() : 0;
  for (size_t i = first; i < finding.details.size(); ++i) {
    if (i == first + kMostDetails) {
      html += fmt::format("<p>... and {} more</p>\n", finding.details.size() - i);
      break;
    }
    html += "<p>" + clipped(finding.details[i], kMostText) + "</p>\n";
  }
  return html;
}

std::string summary_html(size_t number, const Finding& finding) {
  return fmt::format(
      "<summary><h3>{}. <span class=\"verdict {}\">{}</span> {}</h3>{}</summary>\n", number,
      verdict_class(finding), clipped(finding.verdict, 40), clipped(finding.headline, kMostText),
      finding.times > 1 ? fmt::format(" <span class=\"soft\">{} times</span>", finding.times) : "");
}

// The page as it grows.
class Page {
 public:
  Page(const Results& results, SourceFolders* folders, std::ostream* out)
      : results_(results), folders_(*folders), out_(*out) {}

  void head();
  void judged();
  void tools();
  void decisions();
  void groups();
  void end() {
    put("</main>\n<script>" + std::string(kPageScript) + "</script>\n</body></html>\n");
  }

 private:
  void put(const std::string& html) {
    bytes_ += html.size();
    out_ << html;
  }
  void finding(const Group& group, size_t member, bool open);

  const Results& results_;
  SourceFolders& folders_;
  std::ostream& out_;
  size_t bytes_ = 0;
};

void Page::head() {
  const std::vector<Finding>& findings = results_.findings();
  const std::string title =
      fmt::format("tsomon: {} finding{}", findings.size(), findings.size() == 1 ? "" : "s");
  put(fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title><style>{}</style></head><body>\n<header><h1>{}</h1>\n",
      title, kPageStyle, title));
  std::map<std::string, size_t> by_verdict;
  uint64_t times = 0;
  for (const Finding& finding : findings) {
    ++by_verdict[verdict_class(finding)];
    times += finding.times;
  }
  const size_t incomplete =
      static_cast<size_t>(std::count_if(results_.judged().begin(), results_.judged().end(),
                                        [](const Judged& judged) { return !judged.complete; }));
  std::string counts = "<ul class=\"counts\">";
  for (const char* const verdict : {"definite", "explored", "predicted", "possible"}) {
    if (by_verdict.count(verdict) != 0) {
      counts += fmt::format("<li><b>{}</b> <span class=\"{}\">{}</span></li>", by_verdict[verdict],
                            verdict, verdict);
    }
  }
  counts += fmt::format("<li><b>{}</b> time{} in all</li><li><b>{}</b> judgement{}</li>", times,
                        times == 1 ? "" : "s", results_.judged().size(),
                        results_.judged().size() == 1 ? "" : "s");
  if (incomplete > 0) {
    counts +=
        fmt::format("<li><b>{}</b> <span class=\"possible\">not complete</span></li>", incomplete);
  }
  put(counts + "</ul></header>\n<main>\n");
}

std::string judged_html(const Judged& judged) {
  std::string notes;
  for (size_t i = 0; i < judged.notes.size(); ++i) {
    if (i == kMostNotes) {
      notes += fmt::format("<br>... and {} more", judged.notes.size() - i);
      break;
    }
    notes += (notes.empty() ? "" : "<br>") + clipped(judged.notes[i], kMostText);
  }
  std::string counters;
  for (const auto& [name, number] : judged.counters) {
    if (number > 0) {
      counters += fmt::format("{}{} {}", counters.empty() ? "" : ", ",
                              name == "lost_events" ? "lost events" : name, number);
    }
  }
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td></tr>\n",
      clipped(judged.name, kMostText), clipped(judged.tool, kMostText),
      clipped(judged.question, kMostText),
      judged.verdict.empty() ? "not judged" : clipped(judged.verdict, kMostText), counters,
      judged.complete ? "yes" : "<b class=\"possible\">no</b>", notes);
}

void Page::judged() {
  const std::vector<Judged>& all = results_.judged();
  put(
      fmt::format("<details{}><summary><h2>What was judged, and what was not seen</h2></summary>"
                  "<div class=\"in scroll\">\n<table><tr><th scope=\"col\">input</th>"
                  "<th scope=\"col\">tool</th><th scope=\"col\">question</th>"
                  "<th scope=\"col\">verdict</th><th scope=\"col\">counted</th>"
                  "<th scope=\"col\">complete</th><th scope=\"col\">notes</th></tr>\n",
                  all.size() <= 10 ? " open" : ""));
  // Those that say least come first where not all have room.
  std::vector<const Judged*> order;
  for (const Judged& judged : all) {
    order.push_back(&judged);
  }
  if (order.size() > kMostJudged) {
    std::stable_sort(order.begin(), order.end(),
                     [](const Judged* a, const Judged* b) { return !a->complete && b->complete; });
  }
  for (size_t i = 0; i < std::min(order.size(), kMostJudged); ++i) {
    put(judged_html(*order[i]));
  }
  put("</table>\n");
  if (order.size() > kMostJudged) {
    put(fmt::format("<p>... and {} more</p>\n", order.size() - kMostJudged));
  }
  for (const std::string& problem : results_.problems()) {
    put("<p>" + clipped(problem, kMostText) + "</p>\n");
  }
  for (const std::string& problem : folders_.problems()) {
    put("<p>--source " + clipped(problem, kMostText) + "</p>\n");
  }
  put("</div></details>\n");
}

// Without the script they do nothing, and are not there.
void Page::tools() {
  std::set<std::string> kinds;
  std::set<std::string> verdicts;
  for (const Finding& finding : results_.findings()) {
    kinds.insert(rule_of(finding.rule).id);
    verdicts.insert(verdict_class(finding));
  }
  std::string html =
      "<div class=\"tools\" id=\"tools\" role=\"search\" hidden>\n<label>Search ( / )<input "
      "type=\"search\" id=\"q\" autocomplete=\"off\" spellcheck=\"false\"></label>\n"
      "<label>Kind<select id=\"kind\"><option value=\"\">all</option>";
  for (const std::string& kind : kinds) {
    html += fmt::format("<option value=\"{}\">{}</option>", kind, rule_of(kind).name);
  }
  html += "</select></label>\n<label>Verdict<select id=\"verdict\"><option value=\"\">all</option>";
  for (const std::string& verdict : verdicts) {
    html += fmt::format("<option value=\"{0}\">{0}</option>", verdict);
  }
  put(html +
      "</select></label>\n<button type=\"button\" id=\"open\">Expand all</button><button "
      "type=\"button\" id=\"close\">Collapse all</button>\n<output id=\"shown\" role=\"status\" "
      "aria-live=\"polite\"></output><span class=\"soft\">j, k: next, previous; Enter: open</span>"
      "\n</div>\n");
}

void Page::finding(const Group& group, size_t member, bool open) {
  const Finding& finding = results_.findings()[member];
  const size_t number = member + 1;
  std::string html = fmt::format(
      "<details class=\"finding\" id=\"f{}\" data-kind=\"{}\" data-verdict=\"{}\" "
      "data-group=\"{}\"{}>{}<div class=\"in\">\n<p class=\"soft\">{}</p>\n",
      number, rule_of(finding.rule).id, verdict_class(finding), clipped(group.name, kMostText),
      open ? " open" : "", summary_html(number, finding), rule_of(finding.rule).help);
  html += waits_html(finding);
  const size_t rows = rows_of_many(results_.findings().size());
  if (bytes_ < kPictureBytes) {
    html += pictures_html(number, finding, rows);
  } else {
    html += "<p class=\"note\">Pictures and source lines are left out: the page is large.</p>\n";
  }
  html += cycle_html(finding);
  if (bytes_ < kPictureBytes) {
    html += excerpts_html(finding, &folders_);
  }
  html += accesses_html(finding, rows) + details_html(finding) + facts_html(finding);
  put(html + "</div></details>\n");
}

void Page::decisions() {
  for (const Decisions& decisions : results_.decisions()) {
    if (bytes_ > kPictureBytes / 2) {
      put("<p>What decided in other programs has no room on this page.</p>\n");
      return;
    }
    put(decisions_html(decisions));
  }
}

void Page::groups() {
  const std::vector<Group> groups = groups_of(results_.findings());
  size_t left = results_.findings().size();
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    if (bytes_ > kPageBytes) {
      break;
    }
    put(fmt::format(
        "<details class=\"group\"{}><summary><h2>{} <code>{}</code></h2> <span "
        "class=\"soft\">{} finding{}, {} time{}</span></summary><div class=\"in\">\n",
        i < kOpen ? " open" : "", group.kind, clipped(group.name, kMostText), group.members.size(),
        group.members.size() == 1 ? "" : "s", group.times, group.times == 1 ? "" : "s"));
    for (const size_t member : group.members) {
      if (bytes_ > kPageBytes) {
        break;
      }
      finding(group, member, i < kOpen && member == group.members.front());
      --left;
    }
    put("</div></details>\n");
  }
  if (results_.findings().empty()) {
    put("<p>Nothing was found.</p>\n");
  }
  if (left > 0) {
    put(
        fmt::format("<p>{} more findings have no room on this page. <code>--ndjson</code> has "
                    "all.</p>\n",
                    left));
  }
}

}  // namespace

void write_html(const Results& results, const std::vector<std::string>& sources,
                std::ostream& out) {
  SourceFolders folders(sources,
                        sources.empty() ? std::vector<std::string>() : source_files_of(results));
  Page page(results, &folders, &out);
  page.head();
  page.judged();
  page.tools();
  page.decisions();
  page.groups();
  page.end();
}

}  // namespace tsomon::report
