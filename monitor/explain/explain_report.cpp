// The words of an explanation.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

#include "monitor/explain/explain.h"
#include "monitor/explain/explain_explored.h"
#include "monitor/findings/cycle_text.h"
#include "monitor/findings/event_text.h"
#include "monitor/process/source_lines.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

using explain::BlockPlace;
using explain::FencePlace;
using explain::Repair;

ReportedAccess access_of(const ExplainedInput& input, uint32_t event) {
  return reported_access(event, input.trace.events[event], input.trace.symbols, input.names);
}

// Places in an explanation are numbered over the inputs that have violations.
std::vector<const ExplainedInput*> explained(const Explanation& explanation) {
  std::vector<const ExplainedInput*> inputs;
  for (const ExplainedInput& input : explanation.violating) {
    const auto& findings = input.report.findings;
    if (std::any_of(findings.begin(), findings.end(),
                    [](const Finding& one) { return !one.violation.cycle.empty(); })) {
      inputs.push_back(&input);
    }
  }
  return inputs;
}

std::string span_text(const BlockPlace& block) {
  const std::string first = printable(block.first_location);
  const std::string last = printable(block.last_location);
  return first == last ? first : first + " to " + last;
}

// What exploring the i-th repair showed; nullptr: it was not explored.
const ExploredRepair* explored_at(const ExploredRepairs* explored, size_t i) {
  return explored != nullptr && i < explored->repairs.size() ? &explored->repairs[i] : nullptr;
}

std::string verified_text(const Repair& repair, const ExploredRepair* explored) {
  const std::optional<bool> verified = both_verified(repair, explored);
  std::string text = !verified ? "not verified" : *verified ? "verified" : "refuted";
  return explored == nullptr ? text : text + ", by exploring";
}

std::string explored_text(const ExploredRepair& explored) {
  std::string text =
      fmt::format("  explored with it: {} executions, the violation {}\n", explored.executions,
                  !explored.gone   ? "was not decided"
                  : *explored.gone ? "is gone from all of them"
                                   : "is still there");
  for (const OtherFinding& other : explored.others) {
    text += fmt::format("    {}: {}: {}\n", other.is_new ? "new" : "also there", other.kind,
                        printable(other.text));
    for (const std::string& location : other.locations) {
      text += fmt::format("      at {}\n", printable(location));
    }
  }
  for (const std::string& other : explored.went_too) {
    text += "    gone, too: " + printable(other) + "\n";
  }
  for (const std::string& note : explored.notes) {
    text += "    not complete: " + printable(note) + "\n";
  }
  return text;
}

nlohmann::ordered_json explored_json(const ExploredRepair& explored) {
  auto others = nlohmann::ordered_json::array();
  for (const OtherFinding& other : explored.others) {
    others.push_back({{"kind", other.kind},
                      {"text", other.text},
                      {"locations", other.locations},
                      {"new", other.is_new}});
  }
  nlohmann::ordered_json object = {{"gone", nullptr},
                                   {"complete", explored.complete},
                                   {"executions", explored.executions},
                                   {"classes", explored.classes},
                                   {"others", std::move(others)},
                                   {"gone_too", explored.went_too},
                                   {"notes", explored.notes}};
  if (explored.gone) {
    object["gone"] = *explored.gone;
  }
  return object;
}

std::string lock_name(const ExplainedInput& input, uint32_t acquisition) {
  const ReportedAccess access = access_of(input, acquisition);
  return printable(access.variable.empty() ? access.operand : access.variable);
}

std::string lock_text(const ExplainedInput& input, const BlockPlace& block) {
  std::string text =
      fmt::format("    lock: hold {} from {}; it is held at {} accesses to the same locations\n",
                  lock_name(input, block.lock->acquisition), span_text(block), block.lock->with);
  if (block.lock->without > 0) {
    std::vector<std::string> places;
    for (const std::string& place : block.lock->uncovered) {
      places.push_back(printable(place));
    }
    text += fmt::format("      and also at {} ({} accesses without it)\n", fmt::join(places, ", "),
                        block.lock->without);
  }
  return text;
}

// The code itself, where its file is here.
std::vector<std::string> code_of(const ExplainedInput& input, const BlockPlace& block) {
  constexpr int kMaxLines = 12;
  std::vector<std::string> code;
  if (!input.names.place) {
    return code;
  }
  const SourcePlace first = input.names.place(block.first_location);
  const SourcePlace last = input.names.place(block.last_location);
  if (first.file.empty() || first.file != last.file || first.line <= 0 || last.line < first.line ||
      last.line - first.line >= kMaxLines) {
    return code;
  }
  std::istringstream file(source_text(first));
  std::string line;
  for (int number = 1; number <= last.line && std::getline(file, line); ++number) {
    if (number >= first.line) {
      code.push_back(line);
    }
  }
  return code;
}

std::string block_text(const ExplainedInput& input, const BlockPlace& block) {
  std::string text = fmt::format(
      "  make atomic: unit {}, {}\n    where it was interrupted: {} #{} to #{}\n",
      printable(block.method), span_text(block),
      printable(thread_text(input.trace.events[block.found.first].thread, input.trace.symbols)),
      block.found.first, block.found.last);
  for (const std::string& line : code_of(input, block)) {
    text += "    | " + printable(line) + "\n";
  }
  return block.lock ? text + lock_text(input, block) : text;
}

std::string fence_text(const ExplainedInput& input, const FencePlace& fence) {
  return fmt::format(
      "  fence after {}\n    {} time{} in the input; a locked instruction in its "
      "place does as well\n",
      access_line(access_of(input, fence.after)), fence.times, fence.times == 1 ? "" : "s");
}

nlohmann::ordered_json block_json(const ExplainedInput& input, const BlockPlace& block) {
  nlohmann::ordered_json object = {
      {"file", input.file},
      {"thread", thread_text(input.trace.events[block.found.first].thread, input.trace.symbols)},
      {"unit", block.method},
      {"first", block.found.first},
      {"last", block.found.last},
      {"locations", {block.first_location, block.last_location}},
      {"lock", nullptr}};
  if (block.lock) {
    object["lock"] = {{"name", lock_name(input, block.lock->acquisition)},
                      {"with", block.lock->with},
                      {"without", block.lock->without},
                      {"uncovered", block.lock->uncovered}};
  }
  if (const auto code = code_of(input, block); !code.empty()) {
    object["code"] = code;
  }
  return object;
}

nlohmann::ordered_json repair_json(const std::vector<const ExplainedInput*>& inputs,
                                   const Repair& repair, const ExploredRepair* explored) {
  auto blocks = nlohmann::ordered_json::array();
  auto fences = nlohmann::ordered_json::array();
  for (const BlockPlace& block : repair.blocks) {
    blocks.push_back(block_json(*inputs[block.input], block));
  }
  for (const FencePlace& fence : repair.fences) {
    const ExplainedInput& input = *inputs[fence.input];
    fences.push_back({{"file", input.file},
                      {"after", fence.after},
                      {"location", fence.location},
                      {"times", fence.times},
                      {"store", access_json(access_of(input, fence.after))}});
  }
  nlohmann::ordered_json object = {{"blocks", std::move(blocks)},
                                   {"fences", std::move(fences)},
                                   {"rank", repair.rank},
                                   {"forbids", repair.forbids},
                                   {"verified", nullptr}};
  if (repair.assumes_times) {
    object["assumes_times"] = true;
  }
  if (const std::optional<bool> verified = both_verified(repair, explored)) {
    object["verified"] = *verified;
  }
  if (explored != nullptr) {
    object["explored"] = explored_json(*explored);
  }
  return object;
}

std::vector<std::string> notes_of(const Explanation& explanation, const ExploredRepairs* explored) {
  std::vector<std::string> notes;
  const auto add = [&](const ExplainedInput& input, const auto& more) {
    for (const std::string& note : more) {
      notes.push_back(input.input + ": " + note);
    }
  };
  for (const ExplainedInput& input : explanation.violating) {
    add(input, input.report.notes);
    if (input.report.more.all() > 0) {
      notes.push_back(fmt::format("{}: {} more violations were not looked at", input.input,
                                  input.report.more.all()));
    }
  }
  for (const ExplainedInput& input : explanation.passing) {
    add(input, input.notes);
  }
  for (const std::string& note : explanation.repairs.notes) {
    notes.push_back(note);
  }
  for (size_t i = 0; explored != nullptr && i < explored->notes.size(); ++i) {
    notes.push_back("explored: " + explored->notes[i]);
  }
  return notes;
}

}  // namespace

std::string explanation_text(const Explanation& explanation, const ExploredRepairs* explored) {
  const std::vector<const ExplainedInput*> inputs = explained(explanation);
  std::string text;
  for (const ExplainedInput& input : explanation.violating) {
    text += fmt::format("{}: {}: {}, violations: {}\n", input.input,
                        property_name(explanation.property), input.report.verdict_name(),
                        input.report.violations());
  }
  if (explanation.violations() > 0) {
    const size_t count = explanation.repairs.repairs.size();
    text += fmt::format("what would have ruled {} out: {} repair{}\n",
                        explanation.repairs.violations == 1 ? "it" : "them all", count,
                        count == 1 ? "" : "s");
  }
  for (size_t i = 0; i < explanation.repairs.repairs.size(); ++i) {
    const Repair& repair = explanation.repairs.repairs[i];
    const ExploredRepair* const tried = explored_at(explored, i);
    text += fmt::format("[{}] {}", repair.rank, verified_text(repair, tried));
    text += explanation.passing.empty() ? std::string("\n")
                                        : fmt::format("; forbids {} of {} passing traces\n",
                                                      repair.forbids, explanation.passing.size());
    for (const FencePlace& fence : repair.fences) {
      text += fence_text(*inputs[fence.input], fence);
    }
    if (repair.assumes_times) {
      text += "    helps only if what follows takes place when it did without it\n";
    }
    for (const BlockPlace& block : repair.blocks) {
      text += block_text(*inputs[block.input], block);
    }
    text += tried != nullptr ? explored_text(*tried) : std::string();
  }
  for (const explain::SmallestTrace& smallest : explanation.repairs.smallest) {
    text += fmt::format("smallest trace{}:\n", smallest.complete ? "" : " so far");
    for (const uint32_t e : smallest.events) {
      const ReportedAccess access = access_of(*inputs[smallest.input], e);
      text += fmt::format("  {} {}\n", printable(access.thread), access_line(access));
    }
  }
  for (const std::string& note : notes_of(explanation, explored)) {
    text += "note: " + note + "\n";
  }
  return text;
}

nlohmann::ordered_json explanation_json(const Explanation& explanation,
                                        const ExploredRepairs* explored) {
  const std::vector<const ExplainedInput*> inputs = explained(explanation);
  auto files = nlohmann::ordered_json::array();
  Violations found;
  bool inconclusive = false;
  for (const ExplainedInput& input : explanation.violating) {
    files.push_back({{"file", input.file},
                     {"events", input.trace.events.size()},
                     {"verdict", input.report.verdict_name()},
                     {"violations", input.report.violations()}});
    found.add(input.report.all());
    inconclusive = inconclusive || input.report.verdict() == Verdict::kInconclusive;
  }
  const auto worst = std::find_if(explanation.violating.begin(), explanation.violating.end(),
                                  [&](const ExplainedInput& one) {
                                    return one.report.verdict() == verdict_of(found, !inconclusive);
                                  });
  auto repairs = nlohmann::ordered_json::array();
  for (size_t i = 0; i < explanation.repairs.repairs.size(); ++i) {
    repairs.push_back(
        repair_json(inputs, explanation.repairs.repairs[i], explored_at(explored, i)));
  }
  nlohmann::ordered_json object = {
      {"file", explanation.violating.front().file},
      {"files", std::move(files)},
      {"passing", explanation.passing.size()},
      {"property", property_name(explanation.property)},
      {"verdict",
       worst == explanation.violating.end() ? "inconclusive" : worst->report.verdict_name()},
      {"complete", explanation.complete()},
      {"violations", explanation.violations()},
      {"eliminators", std::move(repairs)}};
  if (!explanation.repairs.smallest.empty()) {
    auto all = nlohmann::ordered_json::array();
    for (const explain::SmallestTrace& smallest : explanation.repairs.smallest) {
      all.push_back({{"file", inputs[smallest.input]->file},
                     {"events", smallest.events},
                     {"complete", smallest.complete}});
    }
    object["smallest"] = std::move(all);
  }
  if (const auto notes = notes_of(explanation, explored); !notes.empty()) {
    object["notes"] = notes;
  }
  return object;
}

}  // namespace tsomon
