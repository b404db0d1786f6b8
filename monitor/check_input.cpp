#include "monitor/check_input.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>

#include <sys/stat.h>

#include "decoders/capture/chunks.h"
#include "decoders/std/reader.h"
#include "monitor/read_input.h"
#include "monitor/stream_check.h"
#include "monitor/symbols.h"

namespace tsomon {
namespace {

constexpr size_t kBlockEvents = 4096;

// Known to be a text trace before anything is read. A pipe cannot be looked at without reading it.
bool is_text(const std::string& path, InputFormat format) {
  if (format != InputFormat::kAuto) {
    return format == InputFormat::kStd;
  }
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return false;
  }
  std::array<char, 64> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return !capture::looks_like_capture({bytes.data(), static_cast<size_t>(file.gcount())});
}

Result<CheckReport> judge(const Trace& trace, const CheckOptions& options) {
  if (!StreamCheck::can_check(options) || !StreamCheck::in_order(trace)) {
    return check_trace(trace, options);
  }
  StreamCheck check(trace.symbols, options);
  EventBlock block;
  for (size_t first = 0; first < trace.events.size(); first += kBlockEvents) {
    block.clear();
    block.append(trace, first, std::min(first + kBlockEvents, trace.events.size()));
    check.add(block);
  }
  return check.finish(trace.complete, trace.lost_events);
}

// Every event takes place at its place in the file.
bool without_intervals(const EventBlock& block, uint64_t first_index) {
  for (size_t i = 0; i < block.events.size(); ++i) {
    const Event& event = block.events[i];
    if (event.has_hi != 0 || event.lo != static_cast<int64_t>(first_index + i) ||
        (!event.has_extras() && event.span_or_extra != 0)) {
      return false;
    }
  }
  return true;
}

Result<CheckedInput> check_text(const std::string& path, const CheckOptions& options) {
  CheckedInput checked;
  checked.input = input_name(path);
  const auto failed = [&](Error error) {
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  };
  auto reader = StdReader::open(path);
  if (!reader) {
    return failed(reader.error());
  }
  std::optional<StreamCheck> stream;
  stream.emplace(reader->symbols(), options);
  std::optional<Trace> whole;  // when lines carry intervals
  EventBlock block;
  uint64_t events = 0;
  while (true) {
    const auto more = reader->next(block);
    if (!more) {
      return failed(more.error());
    }
    if (!*more) {
      break;
    }
    if (!whole && stream->has_everything() && !without_intervals(block, events)) {
      whole = stream->everything();
    }
    if (whole) {
      whole->append(block);
    } else {
      stream->add(block);
    }
    events += block.events.size();
  }
  if (!reader->complete()) {
    checked.warnings.push_back(missing_events(reader->lost_events()));
  }
  Result<CheckReport> report = tl::unexpected<Error>(Error());
  if (whole) {
    whole->complete = reader->complete();
    whole->lost_events = reader->lost_events();
    whole->symbols = reader->take_symbols();
    report = judge(*whole, options);
    checked.symbols = std::move(whole->symbols);
  } else {
    report = stream->finish(reader->complete(), reader->lost_events());
    stream.reset();
    checked.symbols = reader->take_symbols();
  }
  if (!report) {
    return failed(report.error());
  }
  checked.report = std::move(*report);
  return checked;
}

}  // namespace

Result<CheckedInput> check_input(const std::string& path, InputFormat format,
                                 const CheckOptions& options) {
  if (StreamCheck::can_check(options) && is_text(path, format)) {
    return check_text(path, options);
  }
  auto loaded = load_trace(path, format);
  if (!loaded) {
    return tl::unexpected<Error>(std::move(loaded.error()));
  }
  CheckedInput checked;
  checked.input = loaded->input;
  checked.warnings = std::move(loaded->warnings);
  for (std::string& warning : symbolise(loaded->trace, loaded->modules)) {
    checked.warnings.push_back(std::move(warning));
  }
  auto report = judge(loaded->trace, options);
  if (!report) {
    Error error = report.error();
    error.input = checked.input;
    return tl::unexpected<Error>(std::move(error));
  }
  checked.report = std::move(*report);
  checked.symbols = std::move(loaded->trace.symbols);
  return checked;
}

}  // namespace tsomon
