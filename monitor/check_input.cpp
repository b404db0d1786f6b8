#include "monitor/check_input.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "monitor/check_parts.h"
#include "monitor/event_source.h"
#include "monitor/heap_objects.h"
#include "monitor/held_units.h"
#include "monitor/read_ahead.h"
#include "monitor/stream_check.h"

namespace tsomon {
namespace {

// Numbers as reports have them.
void add_objects(const EventBlock& block, uint64_t first, const std::vector<uint64_t>& lines,
                 HeapObjects* objects) {
  for (size_t i = 0; i < block.events.size(); ++i) {
    objects->add(block.events[i], lines.empty() ? first + i : lines[i]);
  }
}

// What could not be waited for.
void tell_of(const HeldUnits& held, CheckReport* report) {
  if (held.misjudged() != 0) {
    report->findings.clear();
    report->more = {};
    report->unfenced.clear();
    report->missing(misjudged_text(held.misjudged()));
  } else if (held.taken_apart() != 0) {
    report->missing(taken_apart_text(held.taken_apart()));
  }
}

Result<CheckReport> check_stream(EventSource& source, const CheckOptions& options,
                                 EventCount* count, HeapObjects* objects) {
  const bool may_have_units = source.may_have_units();
  ReadAhead reader(source, options.jobs);
  StreamCheck check(reader.judged_symbols(), options);
  if (!may_have_units) {
    check.expect_no_units();
  }
  uint64_t events = 0;
  for (;;) {
    const auto block = reader.next();
    if (!block) {
      return tl::unexpected<Error>(block.error());
    }
    if (*block == nullptr) {
      break;
    }
    add_objects((*block)->events, events, (*block)->origin.lines, objects);
    events += (*block)->events.events.size();
    check.add((*block)->events, (*block)->origin);
  }
  auto report = check.finish(source.complete(), source.lost_events());
  if (report) {
    report->threads = reader.count().threads();
    report->units = reader.count().units();
    *count = reader.count();
    tell_of(reader.units(), &*report);
  }
  return report;
}

// `hidden`: violations with orders that are not certain were found in a sample, and left out.
Result<CheckedInput> judge(const std::string& path, InputFormat format, const CheckOptions& options,
                           const PerfOptions& perf, bool& hidden) {
  const bool stream = StreamCheck::can_check(options);
  auto source = EventSource::open(
      path, {format, stream ? EventOrder::kTime : EventOrder::kInput, true, perf});
  if (!source) {
    return tl::unexpected<Error>(std::move(source.error()));
  }
  CheckedInput checked;
  checked.input = (*source)->input();
  const auto keep = [&](CheckReport&& report) { checked.report = std::move(report); };
  Result<void> judged;
  EventCount count;
  const auto objects = std::make_shared<HeapObjects>();
  if (stream) {
    judged = check_stream(**source, options, &count, objects.get()).map(keep);
    checked.symbols = judged ? (*source)->take_symbols() : Symbols();
    checked.report.basis =
        basis_of(count, checked.symbols, (*source)->selection(), (*source)->basis());
  } else {
    judged = collect(**source).and_then([&](Trace&& trace) {
      add_objects(trace, 0, {}, objects.get());
      CheckOptions whole = options;
      whole.source = (*source)->basis();
      auto report = check_trace(trace, whole).map(keep);
      checked.symbols = std::move(trace.symbols);
      return report;
    });
  }
  if (!judged) {
    Error error = judged.error();
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  }
  if ((*source)->sampled()) {
    const uint64_t found = checked.report.violations();
    keep_what_is_certain(&checked.report);
    hidden = found > checked.report.violations();
  }
  checked.report.selection = (*source)->selection();
  checked.report.coverage = (*source)->coverage();
  checked.names = (*source)->names();
  checked.names.objects = objects;
  checked.warnings = (*source)->warnings();
  return checked;
}

}  // namespace

Result<CheckedInput> check_input(const std::string& path, InputFormat format,
                                 const CheckOptions& options, const PerfOptions& perf) {
  bool hidden = false;
  auto checked = judge(path, format, options, perf, hidden);
  std::error_code ignored;
  if (!checked || !hidden || checked->report.verdict() == Verdict::kDefinite ||
      !(std::filesystem::is_regular_file(path, ignored) ||
        std::filesystem::is_directory(path, ignored))) {
    return checked;
  }
  // Of units that are violated in several ways one is told: without the open orders a certain one.
  CheckOptions certain = options;
  certain.analysis.max_undirected = 0;
  auto again = judge(path, format, certain, perf, hidden);
  return again && again->report.verdict() == Verdict::kDefinite ? again : checked;
}

}  // namespace tsomon
