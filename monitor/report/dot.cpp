#include <ostream>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {
namespace {

// In quotes. Lines are separated by \n in what is given.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable_lines(text)) {
    if (c == '\n') {
      result += "\\l";  // a line, to the left
      continue;
    }
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += c;
  }
  return result + '"';
}

std::string access_line(const Access& access) {
  return printable(step_text(access, {access.event, false})) +
         (access.place.text.empty() ? "" : " at " + printable(access.place.text)) + "\n";
}

// A node for each unit of the cycle, with its accesses that are described, and an edge to the next one.
void cycle_nodes(size_t number, const Finding& finding, std::ostream& out) {
  const size_t count = finding.cycle.size();
  std::vector<std::string> inside(count);
  const std::vector<size_t> units = units_of(finding);
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i] != kNoUnit) {
      inside[units[i]] += access_line(finding.accesses[i]);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const Unit& unit = finding.cycle[i];
    const std::string label = printable(unit.label.empty() ? "unit" : unit.label) + " of " +
                              printable(unit.thread) + "\n" + inside[i];
    out << fmt::format("    f{}u{} [shape=box, label={}];\n", number, i, in_quotes(label));
  }
  for (size_t i = 0; i < count; ++i) {
    const Unit& unit = finding.cycle[i];
    out << fmt::format(
        "    f{}u{} -> f{}u{} [label={}];\n", number, i, number, (i + 1) % count,
        in_quotes(fmt::format("#{} to #{}\n{}\n", unit.from, unit.to, printable(unit.reason))));
  }
}

// A node for each access, in the order in which they happen.
void access_nodes(size_t number, const Finding& finding, std::ostream& out) {
  const std::vector<Step> steps = steps_of(finding);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Access& access = *finding.access(steps[i].event);
    const std::string label = printable(access.thread) + "\n" +
                              printable(step_text(access, steps[i])) + "\n" +
                              printable(access.place.text) + "\n";
    out << fmt::format("    f{}a{} [shape=box, label={}];\n", number, i, in_quotes(label));
    if (i > 0) {
      out << fmt::format("    f{}a{} -> f{}a{};\n", number, i - 1, number, i);
    }
  }
  for (size_t i = 0; steps.empty() && i < finding.places.size(); ++i) {
    out << fmt::format("    f{}p{} [label={}];\n", number, i,
                       in_quotes(printable(finding.places[i].text)));
  }
}

}  // namespace

void write_dot(const Results& results, std::ostream& out) {
  out << "digraph tsomon {\n  compound=true;\n  node [fontname=\"monospace\"];\n";
  size_t number = 0;
  for (const Finding& finding : results.findings()) {
    ++number;
    out << fmt::format("  subgraph cluster_{} {{\n    label={};\n", number,
                       in_quotes(fmt::format("{}. {}: {}\n", number, printable(finding.verdict),
                                             printable(finding.headline))));
    if (!finding.cycle.empty()) {
      cycle_nodes(number, finding, out);
    } else {
      access_nodes(number, finding, out);
    }
    out << "  }\n";
  }
  out << "}\n";
}

}  // namespace tsomon::report
