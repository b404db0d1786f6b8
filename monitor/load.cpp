#include "monitor/load.h"

#include <utility>

#include "decoders/capture/chunks.h"
#include "monitor/read_input.h"

namespace tsomon {

std::optional<InputFormat> input_format(std::string_view name) {
  if (name == "auto") {
    return InputFormat::kAuto;
  }
  if (name == "capture") {
    return InputFormat::kCapture;
  }
  return std::nullopt;
}

Result<LoadedTrace> load_trace(const std::string& path, InputFormat /*format*/) {
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
  loaded.format = InputFormat::kCapture;
  auto read = capture::read_capture(*bytes);
  if (!read) {
    return failed(read.error());
  }
  loaded.trace = std::move(read->trace);
  loaded.modules = std::move(read->modules);
  loaded.warnings = std::move(read->problems);
  return loaded;
}

}  // namespace tsomon
