#include "monitor/check/linearizability_check.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "monitor/events/read_input.h"
#include "tso/support/printable.h"
#include "tso/support/text_hash.h"

namespace tsomon {
namespace {

constexpr size_t kMaxOperations = 60;  // operations, in text

// Of what a violation is made of, not of its values: those are named in the order in which they
// occur.
std::string fingerprint_of(const History& history, const linearizability::Violation& violation) {
  std::string all;
  const auto add = [&all](std::string_view text) {
    all += text;
    all += '\xFF';
  };
  std::map<HistoryValue, size_t> named;
  const auto add_value = [&](HistoryValue value) {
    add(value == history_values::kNil
            ? "nil"
            : std::to_string(named.try_emplace(value, named.size()).first->second));
  };
  add(linearizability::kind_name(violation.kind));
  for (size_t i = 0; i < violation.operations.size(); ++i) {
    const HistoryOperation& operation = history.operations[violation.operations[i]];
    add(history.names.text(operation.name));
    std::for_each_n(operation.arguments.begin(), operation.argument_count, add_value);
    add(violation.without_return[i] ? "pending" : "returned");
    std::for_each_n(operation.results.begin(),
                    violation.without_return[i] ? 0 : operation.result_count, add_value);
  }
  return hash_name(all);
}

// Calls have no places in the code.
FindingPlaces places_of(const History& history, const linearizability::Violation& violation) {
  FindingPlaces places;
  places.fingerprint = fingerprint_of(history, violation);
  return places;
}

std::string object_text(const History& history, const linearizability::Violation& violation) {
  std::string text = linearizability::kind_name(violation.kind);
  if (!violation.object.empty()) {
    text += fmt::format(" {}", printable(violation.object));
  }
  return violation.key ? fmt::format("{}, key {}", text, printable(history.text_of(*violation.key)))
                       : text;
}

nlohmann::ordered_json operation_json(const History& history, uint32_t index, bool without_return) {
  const HistoryOperation& operation = history.operations[index];
  nlohmann::ordered_json object = {
      {"process", history.processes.text(operation.process)},
      {"operation", history.describe(operation)},
      {"call_line", operation.call_line},
  };
  if (operation.outcome == OperationOutcome::kReturned && !without_return) {
    object["return_line"] = operation.return_line;
  }
  return object;
}

std::string lines_text(const HistoryOperation& operation, bool without_return) {
  const bool returned = operation.outcome == OperationOutcome::kReturned && !without_return;
  return returned && operation.return_line != operation.call_line
             ? fmt::format("lines {} and {}", operation.call_line, operation.return_line)
             : fmt::format("line {}", operation.call_line);
}

std::string violation_text(const History& history, const linearizability::Violation& violation) {
  std::string out =
      fmt::format("  {}: these operations have no order that explains their results{}:\n",
                  object_text(history, violation),
                  violation.smallest ? "" : " (perhaps fewer of them have none)");
  const size_t shown = std::min(violation.operations.size(), kMaxOperations);
  for (size_t i = 0; i < shown; ++i) {
    const HistoryOperation& operation = history.operations[violation.operations[i]];
    out += fmt::format(
        "    {:<6} {:<28} {}{}\n", printable(history.processes.text(operation.process)),
        printable(history.describe(operation)), lines_text(operation, violation.without_return[i]),
        violation.without_return[i] ? ", whatever it returns" : "");
  }
  if (shown < violation.operations.size()) {
    out += fmt::format("    ... ({} in all)\n", violation.operations.size());
  }
  return out;
}

std::string kinds_text(const linearizability::Report& report) {
  std::map<std::string, uint64_t> counts;
  for (const linearizability::ObjectKind kind : report.kinds) {
    ++counts[linearizability::kind_name(kind)];
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        count == 1 ? kind : fmt::format("{} {}", count, kind));
  }
  return text;
}

}  // namespace

Result<CheckedLinearizability> check_linearizability_of(const std::string& path,
                                                        HistoryFormat format,
                                                        const linearizability::Options& options) {
  auto bytes = read_input(path);
  if (!bytes) {
    return tl::unexpected<Error>(std::move(bytes.error()));
  }
  CheckedLinearizability checked;
  checked.input = input_name(path);
  auto history = read_history(*bytes, checked.input, format);
  if (!history) {
    return tl::unexpected<Error>(std::move(history.error()));
  }
  bytes->clear();
  bytes->shrink_to_fit();
  checked.history = std::move(*history);
  auto report = linearizability::check(checked.history, options);
  if (!report) {
    Error error = std::move(report.error());
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  }
  checked.report = std::move(*report);
  return checked;
}

nlohmann::ordered_json linearizability_json(const std::string& file,
                                            const CheckedLinearizability& checked,
                                            HiddenFindings* hidden) {
  const linearizability::Report& report = checked.report;
  const History& history = checked.history;
  nlohmann::ordered_json object = {
      {"file", file},
      {"events", history.positions},
      {"threads", history.processes.size()},
      {"units", report.operations},
      {"property", "linearizability"},
      {"verdict", linearizability::verdict_name(report.verdict)},
      {"complete", report.verdict != linearizability::Verdict::kInconclusive},
      {"operations", report.operations},
      {"pending", report.pending},
      {"failed", report.failed},
      {"parts", report.parts},
  };
  std::vector<std::string> kinds;
  for (const linearizability::ObjectKind kind : report.kinds) {
    const std::string name = linearizability::kind_name(kind);
    if (std::find(kinds.begin(), kinds.end(), name) == kinds.end()) {
      kinds.push_back(name);
    }
  }
  object["objects"] = kinds;
  if (report.violation) {
    const linearizability::Violation& violation = *report.violation;
    object["object"] = linearizability::kind_name(violation.kind);
    if (!violation.object.empty()) {
      object["object_name"] = violation.object;
    }
    if (violation.key) {
      object["key"] = history.text_of(*violation.key);
    }
    object["minimal"] = violation.lines;
    object["minimal_complete"] = violation.smallest;
    auto operations = nlohmann::ordered_json::array();
    for (size_t i = 0; i < violation.operations.size(); ++i) {
      operations.push_back(
          operation_json(history, violation.operations[i], violation.without_return[i]));
    }
    object["minimal_operations"] = std::move(operations);
    object["fingerprint"] = fingerprint_of(history, violation);
    if (hidden != nullptr) {
      hidden->mark(places_of(history, violation), &object);
    }
  }
  if (!report.linearization.empty()) {
    auto operations = nlohmann::ordered_json::array();
    for (const uint32_t index : report.linearization) {
      operations.push_back(operation_json(history, index, false));
    }
    object["linearization"] = std::move(operations);
  }
  if (!report.notes.empty()) {
    object["notes"] = report.notes;
  }
  return object;
}

std::string linearizability_text(const CheckedLinearizability& checked, HiddenFindings* hidden) {
  const linearizability::Report& report = checked.report;
  const History& history = checked.history;
  std::string out = fmt::format("{}: linearizability: {}\n", printable(checked.input),
                                report.verdict == linearizability::Verdict::kViolation
                                    ? "VIOLATION"
                                    : linearizability::verdict_name(report.verdict));
  out += fmt::format("  {}; operations: {}, pending: {}, processes: {}\n", kinds_text(report),
                     report.operations, report.pending, history.processes.size());
  for (const std::string& note : report.notes) {
    out += fmt::format("  note: {}\n", printable(note));
  }
  if (report.violation && hidden != nullptr &&
      hidden->hide(places_of(history, *report.violation))) {
    out += fmt::format("  {}\n", hidden->text());
  } else if (report.violation) {
    out += violation_text(history, *report.violation);
  }
  if (!report.linearization.empty()) {
    out += "  a linearization:\n";
    for (const uint32_t index : report.linearization) {
      const HistoryOperation& operation = history.operations[index];
      out +=
          fmt::format("    {:<6} {:<28} {}\n", printable(history.processes.text(operation.process)),
                      printable(history.describe(operation)), lines_text(operation, false));
    }
  }
  return out;
}

}  // namespace tsomon
