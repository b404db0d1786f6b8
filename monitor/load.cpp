#include "monitor/load.h"

#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/std/reader.h"
#include "monitor/read_input.h"

namespace tsomon {

std::optional<InputFormat> input_format(std::string_view name) {
  if (name == "auto") {
    return InputFormat::kAuto;
  }
  if (name == "std") {
    return InputFormat::kStd;
  }
  if (name == "capture") {
    return InputFormat::kCapture;
  }
  return std::nullopt;
}

std::string missing_events(uint64_t count) {
  return count == 0 ? "the trace says that events are missing"
                    : fmt::format("the trace says that {} events are missing", count);
}

Result<LoadedTrace> load_trace(const std::string& path, InputFormat format) {
  LoadedTrace loaded;
  loaded.input = input_name(path);
  const auto failed = [&](Error error) {
    error.input = loaded.input;
    return tl::unexpected<Error>(std::move(error));
  };
  auto bytes = read_input(path);
  if (!bytes) {
    return tl::unexpected<Error>(std::move(bytes.error()));
  }
  if (format == InputFormat::kAuto) {
    format = capture::looks_like_capture(*bytes) ? InputFormat::kCapture : InputFormat::kStd;
  }
  loaded.format = format;
  if (format == InputFormat::kStd) {
    auto trace = read_std_text(*bytes, loaded.input);
    if (!trace) {
      return failed(trace.error());
    }
    loaded.trace = std::move(*trace);
    if (!loaded.trace.complete) {
      loaded.warnings.push_back(missing_events(loaded.trace.lost_events));
    }
    return loaded;
  }
  auto read = capture::read_capture(*bytes);
  if (!read) {
    return failed(read.error());
  }
  loaded.trace = std::move(read->trace);
  loaded.modules = std::move(read->modules);
  loaded.warnings = std::move(read->problems);
  loaded.warnings.insert(loaded.warnings.end(), read->notes.begin(), read->notes.end());
  return loaded;
}

}  // namespace tsomon
