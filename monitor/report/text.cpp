#include <algorithm>

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

std::vector<std::string> threads_of(const Finding& finding) {
  std::vector<std::string> threads;
  for (const Access& access : finding.accesses) {
    if (std::find(threads.begin(), threads.end(), access.thread) == threads.end()) {
      threads.push_back(access.thread);
    }
  }
  return threads;
}

std::string step_text(const Access& access, const Step& step) {
  return fmt::format("#{} {}{}", access.event, step.commit ? "commit of " : "", access.what);
}

std::string text_report(const Results& results) {
  std::string text;
  const auto line = [&](std::string_view indent, const std::string& content) {
    text.append(indent).append(printable(content)).push_back('\n');
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
  }
  for (const Judged& judged : results.judged()) {
    line("", fmt::format("{}: {} ({}): {}{}", judged.name, judged.tool, judged.question,
                         judged.verdict.empty() ? "not judged" : judged.verdict,
                         judged.complete ? "" : ", not complete"));
    for (const std::string& note : judged.notes) {
      line("  ", "note: " + note);
    }
  }
  return text;
}

}  // namespace tsomon::report
