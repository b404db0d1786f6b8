#include "monitor/input/pack_source.h"

#include <utility>

#include <fmt/format.h>

#include "decoders/capture/chunks.h"
#include "decoders/perf/reader.h"
#include "monitor/input/open_events.h"
#include "monitor/process/packed_files.h"

namespace tsomon {

Result<std::unique_ptr<EventSource>> open_pack(MappedInput bytes, const std::string& input,
                                               const SourceOptions& options) {
  const auto failed = [&](Error error) {
    error.input = input;
    return tl::unexpected<Error>(std::move(error));
  };
  auto unpacked = unpack(bytes.view());
  if (!unpacked) {
    return failed(unpacked.error());
  }
  bytes.release();
  auto recording = MappedInput::of(std::move(unpacked->recording), true);
  if (!recording) {
    return failed(recording.error());
  }
  SourceOptions inside = options;
  inside.files.pack = unpacked->files;
  if (capture::looks_like_capture(recording->view())) {
    inside.format = InputFormat::kCapture;
  } else if (perf::looks_like_perf_data(recording->view())) {
    inside.format = InputFormat::kPerf;
  } else {
    return failed({ErrorKind::kMalformed,
                   {},
                   fmt::format("member '{}'", kPackRecording),
                   "expected a capture or perf.data"});
  }
  return open_events(std::move(*recording), input, inside);
}

}  // namespace tsomon
