#include "monitor/check/consistency_check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decoders/axe/reader.h"
#include "monitor/events/read_input.h"
#include "monitor/findings/event_text.h"
#include "monitor/findings/reported_cycle.h"
#include "monitor/input/content_format.h"
#include "monitor/input/perf_source.h"
#include "monitor/judge/check_parts.h"
#include "monitor/process/location_texts.h"
#include "tso/model/units.h"
#include "tso/support/printable.h"

namespace tsomon {
namespace {

constexpr size_t kMaxListed = 40;  // operations of a contradiction, in text

Result<bool> judge(CheckedConsistency checked, const ConsistencyOptions& options,
                   const std::function<void(const CheckedConsistency&)>& judged) {
  auto report = check_consistency(checked.trace, options);
  if (!report) {
    Error error = report.error();
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  }
  checked.report = std::move(*report);
  // Every execution has the values of a recording in which nobody read one.
  const bool proper = checked.report.verdict == ConsistencyVerdict::kSc ||
                      checked.report.verdict == ConsistencyVerdict::kTso;
  if (proper && checked.basis != BasisSource::kWritten && !checked.trace.has_read_values()) {
    checked.report.verdict = ConsistencyVerdict::kInconclusive;
    checked.report.notes.emplace_back(
        "no value that was read is recorded: record a program whose threads use atomics");
  }
  judged(checked);
  return true;
}

Result<bool> check_axe(const OpenedInput& opened, const std::string& input,
                       ConsistencyOptions options,
                       const std::function<void(const CheckedConsistency&)>& judged) {
  AxeReader reader = AxeReader::from_descriptor(opened.descriptor.get(), input);
  AxeTest test;
  for (uint64_t number = 0;; ++number) {
    const auto more = reader.next(test);
    if (!more) {
      return tl::unexpected<Error>(more.error());
    }
    if (!*more) {
      return true;
    }
    options.final_values = std::move(test.final_values);
    CheckedConsistency checked;
    checked.input = input;
    checked.test = number;
    checked.trace = std::move(test.trace);
    auto done = judge(std::move(checked), options, judged);
    if (!done) {
      return done;
    }
  }
}

std::string headline(const CheckedConsistency& checked) {
  switch (checked.report.verdict) {
    case ConsistencyVerdict::kSc:
      return "sc (an SC execution has these values)";
    case ConsistencyVerdict::kTso:
      return "tso (a TSO execution has these values)";
    case ConsistencyVerdict::kInconsistent:
      return "INCONSISTENT (no execution has these values)";
    case ConsistencyVerdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

}  // namespace

Result<bool> check_consistency_of(const std::string& path, InputFormat format,
                                  const ConsistencyOptions& options,
                                  const std::function<void(const CheckedConsistency&)>& judged,
                                  const FileSearch& files) {
  auto opened = open_perf_input(path);
  if (!opened) {
    return tl::unexpected<Error>(std::move(opened.error()));
  }
  if (format == InputFormat::kAuto) {
    format = content_format(opened->descriptor.get());
  }
  if (format == InputFormat::kAxe) {
    return check_axe(*opened, input_name(path), options, judged);
  }
  auto loaded = load_trace(std::move(*opened), path, format, files);
  if (!loaded) {
    return tl::unexpected<Error>(std::move(loaded.error()));
  }
  if (loaded->trace.sampled) {
    return tl::unexpected<Error>(Error{ErrorKind::kMalformed,
                                       loaded->input,
                                       {},
                                       "a sample of the accesses has no values; record the "
                                       "program with tsomon record"});
  }
  CheckedConsistency checked;
  checked.input = loaded->input;
  checked.warnings = std::move(loaded->warnings);
  if (loaded->trace.selection.any()) {
    checked.warnings.push_back(selection_text(loaded->trace.selection));
  }
  for (std::string& warning : symbolise(loaded->trace, loaded->modules, loaded->files)) {
    checked.warnings.push_back(std::move(warning));
  }
  checked.trace = std::move(loaded->trace);
  std::for_each(checked.trace.events.begin(), checked.trace.events.end(), EventBlock::drop_digests);
  checked.basis = loaded->basis;
  return judge(std::move(checked), options, judged);
}

const char* consistency_name(ConsistencyVerdict verdict) {
  switch (verdict) {
    case ConsistencyVerdict::kSc:
      return "sc";
    case ConsistencyVerdict::kTso:
      return "tso";
    case ConsistencyVerdict::kInconsistent:
      return "inconsistent";
    case ConsistencyVerdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

namespace {

// Each comes before the next one, the last before the first.
ReportedCycle contradiction_of(const CheckedConsistency& checked) {
  ReportedCycle cycle;
  cycle.of_events = true;
  const Trace& trace = checked.trace;
  const size_t size = checked.report.contradiction.size();
  for (const uint32_t e : checked.report.contradiction) {
    const Event& event = trace.events[e];
    ReportedAccess access = reported_access(e, event, trace.symbols, {});
    add_values(trace, event, &access);
    ReportedStep step;
    step.from = cycle.accesses.size();
    step.to = (step.from + 1) % size;
    cycle.accesses.push_back(std::move(access));
    cycle.steps.push_back(std::move(step));
  }
  return cycle;
}

}  // namespace

nlohmann::ordered_json consistency_json(const std::string& file, const CheckedConsistency& checked,
                                        HiddenFindings* hidden) {
  const ConsistencyReport& report = checked.report;
  nlohmann::ordered_json object = {{"file", file}};
  if (checked.test) {
    object["test"] = *checked.test;
  }
  object["events"] = checked.trace.events.size();
  object["threads"] = threads_with_events(checked.trace);
  object["units"] = UnitTable(checked.trace).size();
  object["property"] = "consistency";
  object["verdict"] = consistency_name(report.verdict);
  object["complete"] = report.complete;
  if (checked.trace.lost_events != 0) {
    object["lost_events"] = checked.trace.lost_events;
  }
  object["decisions"] = report.decisions;
  if (!report.contradiction.empty()) {
    object["contradiction"] = report.contradiction;
    ReportedCycle cycle = contradiction_of(checked);
    auto accesses = nlohmann::ordered_json::array();
    for (const ReportedAccess& access : cycle.accesses) {
      accesses.push_back(access_json(access));
    }
    object["accesses"] = std::move(accesses);
    object["fingerprint"] = fingerprint(cycle);
    if (hidden != nullptr) {
      hidden->mark(places_of(cycle), &object);
    }
  }
  if (!report.witness.empty() && report.verdict == ConsistencyVerdict::kTso) {
    auto steps = nlohmann::ordered_json::array();
    for (const Step& step : report.witness) {
      steps.push_back({{step.commit ? "commit" : "issue", step.event}});
    }
    object["witness"] = std::move(steps);
  }
  if (!report.notes.empty()) {
    object["notes"] = report.notes;
  }
  return object;
}

std::string consistency_text(const CheckedConsistency& checked, HiddenFindings* hidden) {
  const ConsistencyReport& report = checked.report;
  std::string out =
      fmt::format("{}{}: consistency: {}\n", printable(checked.input),
                  checked.test ? fmt::format(": test {}", *checked.test) : "", headline(checked));
  out += fmt::format("  events: {}, threads: {}, decisions: {}\n", checked.trace.events.size(),
                     threads_with_events(checked.trace), report.decisions);
  for (const std::string& note : report.notes) {
    out += fmt::format("  note: {}\n", printable(note));
  }
  if (!report.contradiction.empty() && hidden != nullptr &&
      hidden->hide(places_of(contradiction_of(checked)))) {
    return out + fmt::format("  {}\n", hidden->text());
  }
  if (!report.contradiction.empty()) {
    const bool alone = report.contradiction.size() == 1;
    out += fmt::format("  {}:\n",
                       alone ? "this cannot have been read"
                       : report.verdict == ConsistencyVerdict::kTso
                           ? "under SC each of these would come before the next, the last before "
                             "the first"
                           : "each of these would come before the next, the last before the first");
    const size_t shown = std::min(report.contradiction.size(), kMaxListed);
    for (size_t i = 0; i < shown; ++i) {
      const uint32_t e = report.contradiction[i];
      const Symbols& symbols = checked.trace.symbols;
      out += fmt::format("    {:<8} #{:<6} {}\n",
                         printable(thread_text(checked.trace.events[e].thread, symbols)), e,
                         event_text(checked.trace, symbols, e));
    }
    if (shown < report.contradiction.size()) {
      out += fmt::format("    ... ({} in all)\n", report.contradiction.size());
    }
  }
  return out;
}

}  // namespace tsomon
