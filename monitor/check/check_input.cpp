#include "monitor/check/check_input.h"

#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "monitor/events/event_source.h"
#include "monitor/events/held_units.h"
#include "monitor/events/places.h"
#include "monitor/events/read_ahead.h"
#include "monitor/events/read_input.h"
#include "monitor/findings/happened_deadlock.h"
#include "monitor/input/open_events.h"
#include "monitor/judge/check_parts.h"
#include "monitor/judge/losses.h"
#include "monitor/judge/stream_check.h"
#include "monitor/process/heap_objects.h"
#include "tso/model/idle_iterations.h"
#include "tso/model/lifetimes.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// Numbers as reports have them.
void add_objects(const EventBlock& block, uint64_t first, const std::vector<uint64_t>& lines,
                 HeapObjects* objects) {
  for (size_t i = 0; i < block.events.size(); ++i) {
    objects->add(block.events[i], lines.empty() ? first + i : lines[i]);
  }
}

// What could not be waited for. Which accesses are a unit does not matter for robustness.
void report_held(const HeldUnits& held, CheckReport* report) {
  if (report->property == Property::kRobustness) {
    return;
  }
  if (held.misjudged() != 0) {
    report->findings.clear();
    report->more = {};
    report->unfenced.clear();
    report->missing(misjudged_text(held.misjudged()));
  } else if (held.taken_apart() != 0) {
    report->missing(taken_apart_text(held.taken_apart()));
  }
}

using Reports = std::vector<CheckReport>;

Result<Reports> check_stream(EventSource& source, const std::vector<CheckOptions>& questions,
                             EventCount* count, HeapObjects* objects,
                             std::vector<StuckThread>* stuck) {
  const bool may_have_units = source.may_have_units();
  ReadAhead reader(source, questions.front().jobs);
  std::vector<std::unique_ptr<StreamCheck>> checks;
  for (const CheckOptions& options : questions) {
    checks.push_back(std::make_unique<StreamCheck>(reader.judged_symbols(), options));
    if (!may_have_units) {
      checks.back()->expect_no_units();
    }
  }
  uint64_t events = 0;
  LastWaits waits;
  bool whole = false;
  try {
    while (!stop_asked()) {
      const auto block = reader.next();
      if (!block) {
        return tl::unexpected<Error>(block.error());
      }
      if (*block == nullptr) {
        whole = true;
        break;
      }
      add_objects((*block)->events, events, (*block)->origin.lines, objects);
      waits.add((*block)->events, events, (*block)->origin.lines);
      events += (*block)->events.events.size();
      for (const auto& check : checks) {
        check->add((*block)->events, (*block)->origin);
      }
    }
  } catch (const WorkEnded&) {  // while it was read
  }
  if (stop_asked()) {
    reader.stop();
    for (const auto& check : checks) {
      check->end(WorkLimit::kStopped);
    }
  }
  *count = reader.count();
  if (waits.two_holders() && source.basis() == BasisSource::kWritten) {
    return tl::unexpected<Error>(two_holders_error(*waits.two_holders(), source.symbols()));
  }
  if (whole && source.complete() && !source.sampled()) {
    *stuck = waits.stuck();
  }
  Reports reports;
  for (const auto& check : checks) {
    auto report = check->finish(source.complete(), source.lost_events());
    if (!report) {
      return tl::unexpected<Error>(report.error());
    }
    report->threads = reader.count().threads();
    report->units = reader.count().units();
    report_held(reader.units(), &*report);
    reports.push_back(std::move(*report));
  }
  return reports;
}

Result<Reports> check_whole(const Trace& trace, std::vector<CheckOptions> questions,
                            BasisSource source) {
  Reports reports;
  for (CheckOptions& options : questions) {
    options.source = source;
    // Without an order between threads nobody knows what was given out when.
    std::optional<Trace> renamed;
    if (options.property != Property::kAtomicSets &&
        options.analysis.relation.order == TraceOrder::kIssue) {
      follow_lifetimes(renamed.emplace(trace));
    }
    const Trace& judged = renamed ? *renamed : trace;
    auto report = check_trace(judged, options);
    if (!report) {
      return tl::unexpected<Error>(report.error());
    }
    keep_judged(
        options, [&] { return std::optional(judged); }, &*report);
    reports.push_back(std::move(*report));
  }
  return reports;
}

// `hidden`, by question: violations with orders that are not certain were found in a sample, or in
// a damaged input, and left out.
Result<CheckedProperties> judge(const std::string& path, InputFormat format,
                                const std::vector<CheckOptions>& asked, const PerfOptions& perf,
                                const FileSearch& files, std::vector<bool>& hidden,
                                EventOnlooker* onlooker = nullptr) {
  const bool stream = StreamCheck::can_check(asked.front());
  auto source = open_events(path, {format, stream ? EventOrder::kTime : EventOrder::kInput, true,
                                   perf, files, asked.front().clock_margin, onlooker});
  if (!source) {
    return tl::unexpected<Error>(std::move(source.error()));
  }
  CheckedProperties checked;
  checked.input = (*source)->input();
  // In a slice any store may have been made by who takes no part in it.
  const bool slice = (*source)->slice();
  const char* const sample =
      slice ? "a slice of a run, in which threads may have done what is not seen"
            : "a sample of the accesses";
  std::vector<CheckOptions> questions = asked;
  for (CheckOptions& question : questions) {
    question.analysis.values = question.analysis.values && !slice;
  }
  const auto keep = [&](Reports&& reports) { checked.reports = std::move(reports); };
  Result<void> judged;
  EventCount count;
  const auto objects = std::make_shared<HeapObjects>();
  if (stream) {
    judged = check_stream(**source, questions, &count, objects.get(), &checked.stuck).map(keep);
    checked.symbols = judged ? (*source)->take_symbols() : Symbols();
    for (CheckReport& report : checked.reports) {
      report.basis = basis_of(count, checked.symbols, (*source)->selection(), (*source)->basis());
    }
  } else {
    judged = collect(**source).and_then([&](Trace&& trace) {
      add_objects(trace, 0, {}, objects.get());
      leave_out_waiting(trace);
      auto reports = check_whole(trace, questions, (*source)->basis()).map(keep);
      checked.symbols = std::move(trace.symbols);
      return reports;
    });
  }
  if (!judged) {
    Error error = judged.error();
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  }
  hidden.assign(questions.size(), false);
  for (size_t i = 0; i < checked.reports.size(); ++i) {
    CheckReport& report = checked.reports[i];
    const uint64_t found = report.violations();
    if (const Damage damage = (*source)->damage(); damage != Damage::kNone) {
      leave_out_what_losses_may_rule_out(damage, checked.symbols, questions[i].sets, &report);
    }
    if ((*source)->sampled()) {
      keep_what_is_certain(sample, questions[i].analysis.relation, &report);
    }
    hidden[i] = found > report.violations();
    if (const std::string why = (*source)->nothing_counts(); !why.empty()) {
      keep_nothing(why, &report);
      hidden[i] = false;
    }
    keep_nothing_clean((*source)->other_writers(), &report);
    if (!report.complete() || (*source)->sampled()) {  // there may be fences that were not seen
      report.judged.reset();
    }
    report.selection = (*source)->selection();
    report.coverage = (*source)->coverage();
  }
  checked.names = (*source)->names();
  checked.names.objects = objects;
  checked.warnings = (*source)->warnings();
  return checked;
}

// Before anything was judged.
CheckedProperties nothing_judged(const std::string& path,
                                 const std::vector<CheckOptions>& questions, WorkLimit why) {
  const WorkPause outside;
  CheckedProperties checked;
  checked.input = input_name(path);
  for (const CheckOptions& options : questions) {
    CheckReport& report = checked.reports.emplace_back();
    report.property = options.property;
    report.semantics = options.analysis.relation.semantics;
    report.missing(limit_text(why));
  }
  return checked;
}

// Of units that are violated in several ways one is told: without the open orders a certain one.
void look_for_certain(const std::string& path, InputFormat format,
                      const std::vector<CheckOptions>& questions, const PerfOptions& perf,
                      const FileSearch& files, const std::vector<bool>& hidden,
                      CheckedProperties* checked) {
  for (size_t i = 0; i < questions.size(); ++i) {
    if (!hidden[i] || checked->reports[i].verdict() == Verdict::kDefinite) {
      continue;
    }
    CheckOptions certain = questions[i];
    certain.analysis.max_undirected = 0;
    std::vector<bool> hidden_again;
    auto again = judge(path, format, {certain}, perf, files, hidden_again);
    if (again && again->reports.front().verdict() == Verdict::kDefinite) {
      // The same file read in the same order has the same symbols.
      checked->reports[i] = std::move(again->reports.front());
    }
  }
}

}  // namespace

Result<CheckedProperties> check_properties(const std::string& path, InputFormat format,
                                           const std::vector<CheckOptions>& questions,
                                           const PerfOptions& perf, const FileSearch& files,
                                           EventOnlooker* onlooker) {
  Result<CheckedProperties> checked;
  std::vector<bool> hidden;
  try {
    checked = judge(path, format, questions, perf, files, hidden, onlooker);
  } catch (const WorkEnded& end) {
    return nothing_judged(path, questions, end.limit());
  } catch (const std::bad_alloc&) {
    if (const WorkMeter* const meter = current_meter(); meter == nullptr || !meter->over_bytes()) {
      throw;  // the machine has no more
    }
    return nothing_judged(path, questions, WorkLimit::kMemory);
  }
  std::error_code ignored;
  if (checked && (std::filesystem::is_regular_file(path, ignored) ||
                  std::filesystem::is_directory(path, ignored))) {
    try {
      look_for_certain(path, format, questions, perf, files, hidden, &*checked);
    } catch (const WorkEnded&) {  // what the first look found stands
    }
  }
  return checked;
}

Result<CheckedInput> check_input(const std::string& path, InputFormat format,
                                 const CheckOptions& options, const PerfOptions& perf,
                                 const FileSearch& files) {
  return check_properties(path, format, {options}, perf, files)
      .map([](CheckedProperties&& checked) {
        return CheckedInput{std::move(checked.input), std::move(checked.symbols),
                            std::move(checked.reports.front()), std::move(checked.warnings),
                            std::move(checked.names)};
      });
}

}  // namespace tsomon
