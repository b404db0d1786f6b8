#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "monitor/explore/explore.h"
#include "tso/support/printable.h"

namespace tsomon::explore {

namespace {

std::string replay_text(const Exploration& exploration, const ExploreFinding& finding) {
  return exploration.client.empty() ? finding.schedule
                                    : exploration.client + "@" + finding.schedule;
}

}  // namespace

std::string exploration_text(const Exploration& exploration, const ExploreOptions& options,
                             HiddenFindings* hidden) {
  std::string text = fmt::format(
      "{}: {} under {}: {}{}\n  executions: {}, classes: {}, blocked: {}, redundant: {}\n",
      printable(exploration.program), strategy_text(options.strategy),
      options.model == Model::kTso ? "TSO" : "SC",
      exploration.findings.empty() ? "nothing found"
                                   : fmt::format("{} finding{}", exploration.findings.size(),
                                                 exploration.findings.size() == 1 ? "" : "s"),
      exploration.complete() ? ", complete" : ", not complete", exploration.executions,
      exploration.classes, exploration.blocked, exploration.redundant);
  if (!exploration.forked_because.empty()) {
    text += fmt::format("  forked: {}, as {}\n", exploration.forked,
                        printable(exploration.forked_because));
  }
  if (exploration.clients != 0) {
    text += fmt::format("  clients: {}\n", exploration.clients);
  }
  if (!exploration.client.empty()) {
    text += fmt::format("  the smallest that goes wrong: {}\n", printable(exploration.client));
  }
  for (const auto& [outcome, count] : exploration.outcomes) {
    text += fmt::format("  outcome {}: {} class{}\n", printable(outcome), count,
                        count == 1 ? "" : "es");
  }
  for (const ExploreFinding& finding : exploration.findings) {
    if (hidden != nullptr && hidden->hide(finding.places)) {
      continue;
    }
    text += fmt::format("{}: {} ({} class{})\n", finding.kind, printable(finding.text),
                        finding.classes, finding.classes == 1 ? "" : "es");
    for (const std::string& location : finding.locations) {
      text += fmt::format("  at {}\n", printable(location));
    }
    if (!finding.outcome.empty()) {
      text += fmt::format("  outcome {}\n", printable(finding.outcome));
    }
    if (!finding.repair.empty()) {
      text += fmt::format("  would rule it out: {}\n", finding.repair);
    }
    for (const std::string& operation : finding.history) {
      text += fmt::format("  {}\n", printable(operation));
    }
    text += fmt::format("  --replay '{}'\n", printable(replay_text(exploration, finding)));
  }
  if (hidden != nullptr && hidden->hidden() > 0) {
    text += hidden->text() + "\n";
  }
  for (const std::string& note : exploration.notes) {
    text += fmt::format("not complete: {}\n", printable(note));
  }
  return text;
}

nlohmann::ordered_json exploration_json(const Exploration& exploration,
                                        const ExploreOptions& options, HiddenFindings* hidden) {
  auto outcomes = nlohmann::ordered_json::object();
  for (const auto& [outcome, count] : exploration.outcomes) {
    outcomes[outcome] = count;
  }
  auto findings = nlohmann::ordered_json::array();
  for (const ExploreFinding& finding : exploration.findings) {
    findings.push_back({{"kind", finding.kind},
                        {"schedule", finding.schedule},
                        {"locations", finding.locations},
                        {"text", finding.text},
                        {"classes", finding.classes},
                        {"steps", finding.steps},
                        {"outcome", finding.outcome},
                        {"fingerprint", finding.fingerprint}});
    if (!exploration.client.empty()) {
      findings.back()["replay"] = replay_text(exploration, finding);
    }
    if (!finding.repair.empty()) {
      findings.back()["repair"] = finding.repair;
    }
    if (!finding.history.empty()) {
      findings.back()["history"] = finding.history;
    }
    if (hidden != nullptr) {
      hidden->mark(finding.places, &findings.back());
    }
  }
  nlohmann::ordered_json json = {{"program", exploration.program},
                                 {"model", options.model == Model::kTso ? "tso" : "sc"},
                                 {"strategy", strategy_text(options.strategy)},
                                 {"executions", exploration.executions},
                                 {"blocked", exploration.blocked},
                                 {"redundant", exploration.redundant},
                                 {"classes", exploration.classes},
                                 {"outcomes", std::move(outcomes)},
                                 {"complete", exploration.complete()},
                                 {"findings", std::move(findings)},
                                 {"notes", exploration.notes},
                                 {"in_place", exploration.in_place},
                                 {"forked", exploration.forked},
                                 {"forked_because", exploration.forked_because},
                                 {"seconds", exploration.seconds}};
  if (hidden != nullptr) {
    hidden->add_to(&json);
  }
  if (exploration.clients != 0) {
    json["clients"] = exploration.clients;
    json["client"] = exploration.client.empty() ? nlohmann::ordered_json()
                                                : nlohmann::ordered_json(exploration.client);
  }
  return json;
}

}  // namespace tsomon::explore
