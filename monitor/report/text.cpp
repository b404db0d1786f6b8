#include <iterator>
#include <map>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "monitor/report/render.h"
#include "tso/support/printable.h"

namespace tsomon::report {

std::vector<Step> steps_of(const Finding& finding) {
  std::vector<Step> steps = finding.witness;
  if (steps.empty()) {
    for (const Access& access : finding.accesses) {
      steps.push_back({access.event, false});
    }
  }
  return steps;
}

Threads::Threads(const Finding& finding) {
  for (const Access& access : finding.accesses) {
    add(access.thread);
  }
  for (const Unit& unit : finding.cycle) {
    add(unit.thread);
  }
}

void Threads::add(const std::string& name) {
  if (numbers_.try_emplace(name, names_.size()).second) {
    names_.push_back(name);
  }
}

// Units of a thread follow each other: of those that begin up to the access it can only lie in the last one.
std::vector<size_t> units_of(const Finding& finding) {
  std::map<std::pair<std::string, uint64_t>, size_t> by_begin;
  for (size_t i = 0; i < finding.cycle.size(); ++i) {
    by_begin.try_emplace({finding.cycle[i].thread, finding.cycle[i].first}, i);
  }
  std::vector<size_t> units;
  units.reserve(finding.accesses.size());
  for (const Access& access : finding.accesses) {
    auto after = by_begin.upper_bound({access.thread, access.event});
    size_t unit = kNoUnit;
    if (after != by_begin.begin()) {
      const size_t last = std::prev(after)->second;
      const Unit& before = finding.cycle[last];
      unit = before.thread == access.thread && access.event <= before.last ? last : kNoUnit;
    }
    units.push_back(unit);
  }
  return units;
}

std::string step_text(const Access& access, const Step& step) {
  return fmt::format("#{} {}{}", access.event, step.commit ? "commit of " : "", access.what);
}

std::string markup(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

void write_text(const Results& results, std::ostream& out) {
  const auto line = [&](std::string_view indent, const std::string& content) {
    out << indent << printable(content) << '\n';
  };
  size_t number = 0;
  for (const Finding& finding : results.findings()) {
    line("", fmt::format("{}. {}: {}", ++number, finding.verdict, finding.headline));
    if (finding.times > 1) {
      line("  ", fmt::format("{} times", finding.times));
    }
    for (const Step& step : steps_of(finding)) {
      const Access& access = *finding.access(step.event);
      line("  ", fmt::format("{} {}{}", access.thread, step_text(access, step),
                             access.place.text.empty() ? "" : " at " + access.place.text));
    }
    for (const Place& place : finding.places) {
      line("  ", "at " + place.text);
    }
    for (const std::string& detail : finding.details) {
      line("  ", detail);
    }
    if (!finding.repair.empty()) {
      line("  ", "repair: " + finding.repair);
    }
    if (!finding.replay.empty()) {
      line("  ", "replay: " + finding.replay);
    }
    line("  ", fmt::format("in {}", fmt::join(finding.inputs, ", ")));
    if (!finding.fingerprint.empty()) {
      line("  ", "fingerprint: " + finding.fingerprint);
    }
  }
  for (const Judged& judged : results.judged()) {
    line("", fmt::format("{}: {} ({}): {}{}", judged.name, judged.tool, judged.question,
                         judged.verdict.empty() ? "not judged" : judged.verdict,
                         judged.complete ? "" : ", not complete"));
    for (const std::string& note : judged.notes) {
      line("  ", "note: " + note);
    }
  }
}

}  // namespace tsomon::report
