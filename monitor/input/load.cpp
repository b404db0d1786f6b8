#include "monitor/input/load.h"

#include <utility>

#include <fmt/format.h>

#include "monitor/input/open_events.h"
#include "tso/model/cancelled_units.h"
#include "tso/support/work.h"

namespace tsomon {

std::string missing_events(uint64_t count) {
  return count == 0 ? "the trace says that events are missing"
                    : fmt::format("the trace says that {} events are missing", count);
}

namespace {

// Why no more is to be read; empty: nothing speaks against it.
std::string end_of_reading(uint64_t events, uint64_t max_events) {
  if (events >= max_events) {
    return fmt::format("only the first {} events were looked at", events);
  }
  return stop_asked() ? limit_text(WorkLimit::kStopped) : "";
}

}  // namespace

Result<Trace> collect(EventSource& source) { return collect(source, UINT64_MAX, nullptr); }

Result<Trace> collect(EventSource& source, uint64_t max_events, std::vector<std::string>* notes) {
  Trace trace;
  EventBlock block;
  for (;;) {
    const auto more = source.next(block);
    if (!more) {
      Error error = more.error();
      error.input = source.input();
      return tl::unexpected<Error>(std::move(error));
    }
    if (!*more) {
      break;
    }
    trace.append(block);
    if (notes != nullptr) {
      if (std::string why = end_of_reading(trace.events.size(), max_events); !why.empty()) {
        notes->push_back(std::move(why));
        break;
      }
    }
  }
  trace.complete = source.complete() && (notes == nullptr || notes->empty());
  trace.sampled = source.sampled();
  trace.selection = source.selection();
  trace.lost_events = source.lost_events();
  trace.symbols = source.take_symbols();
  resolve_cancelled_units(trace, source.may_cancel());
  return trace;
}

namespace {

Result<LoadedTrace> load(Result<std::unique_ptr<EventSource>> source) {
  if (!source) {
    return tl::unexpected<Error>(std::move(source.error()));
  }
  auto trace = collect(**source);
  if (!trace) {
    return tl::unexpected<Error>(std::move(trace.error()));
  }
  LoadedTrace loaded;
  loaded.input = (*source)->input();
  loaded.format = (*source)->format();
  loaded.trace = std::move(*trace);
  loaded.may_cancel = (*source)->may_cancel();
  loaded.knows_atomics = (*source)->knows_atomics();
  loaded.modules = (*source)->modules();
  loaded.files = (*source)->files();
  loaded.warnings = (*source)->warnings();
  loaded.basis = (*source)->basis();
  loaded.trace.complete = loaded.trace.complete && (*source)->other_writers().empty();
  loaded.damage = (*source)->damage();
  loaded.nothing_counts = !(*source)->nothing_counts().empty();
  return loaded;
}

}  // namespace

Result<LoadedTrace> load_trace(const std::string& path, InputFormat format, const PerfOptions& perf,
                               const FileSearch& files) {
  return load(open_events(path, {format, EventOrder::kInput, false, perf, files}));
}

Result<LoadedTrace> load_trace(OpenedInput opened, const std::string& path, InputFormat format,
                               const FileSearch& files) {
  return load(open_events(std::move(opened), path, {format, EventOrder::kInput, false, {}, files}));
}

}  // namespace tsomon
