#include "monitor/input/open_events.h"

#include <algorithm>
#include <array>
#include <utility>

#include "monitor/events/read_input.h"
#include "monitor/input/capture_source.h"
#include "monitor/input/content_format.h"
#include "monitor/input/pack_source.h"
#include "monitor/input/perf_source.h"
#include "monitor/input/text_source.h"

namespace tsomon {
namespace {

using Source = Result<std::unique_ptr<EventSource>>;
using OpenBytes = Source (*)(MappedInput, const std::string&, const SourceOptions&);

struct FormatRow {
  const char* name;  // for --format
  InputFormat format;
  OpenBytes open;  // absent: not from bytes that are there as a whole
};

constexpr std::array<FormatRow, 6> kFormats{{{"auto", InputFormat::kAuto, nullptr},
                                             {"std", InputFormat::kStd, nullptr},
                                             {"capture", InputFormat::kCapture, open_capture},
                                             {"perf", InputFormat::kPerf, open_perf_data},
                                             {"axe", InputFormat::kAxe, nullptr},
                                             {"pack", InputFormat::kPack, open_pack}}};

Source refused(const std::string& input, const char* why) {
  return tl::unexpected<Error>({ErrorKind::kUsage, input, {}, why});
}

const FormatRow& row_of(InputFormat format) {
  return *std::find_if(kFormats.begin(), kFormats.end(),
                       [&](const FormatRow& each) { return each.format == format; });
}

// Why an input of this format cannot be read with these options; nullptr: it can.
const char* unfit(InputFormat format, const SourceOptions& options) {
  if (format == InputFormat::kAxe) {
    return kOnlyConsistency;
  }
  if (format == InputFormat::kPack) {
    return nullptr;  // asked again of what is in it
  }
  if (format != InputFormat::kPerf && options.perf.needs_pt()) {
    return kNeedsPt;
  }
  return format != InputFormat::kCapture && options.clock_margin != 0 ? kNeedsStamps : nullptr;
}

}  // namespace

std::optional<InputFormat> input_format(std::string_view name) {
  for (const FormatRow& row : kFormats) {
    if (name == row.name) {
      return row.format;
    }
  }
  return std::nullopt;
}

Source open_events(const std::string& path, const SourceOptions& options) {
  auto opened = open_perf_input(path);
  if (!opened) {
    return tl::unexpected<Error>(opened.error());
  }
  return open_events(std::move(*opened), path, options);
}

Source open_events(OpenedInput opened, const std::string& path, const SourceOptions& options) {
  const std::string input = input_name(path);
  Descriptor descriptor = std::move(opened.descriptor);
  const bool regular = opened.regular;
  const InputFormat format =
      options.format == InputFormat::kAuto ? content_format(descriptor.get()) : options.format;
  if (const char* const why = unfit(format, options)) {
    return refused(input, why);
  }
  if (row_of(format).open == nullptr) {
    return open_text(std::move(descriptor), input, options.order, !regular);
  }
  auto bytes = MappedInput::of(std::move(descriptor), regular);
  if (!bytes) {
    Error error = bytes.error();
    error.input = input;
    return tl::unexpected<Error>(std::move(error));
  }
  return row_of(format).open(std::move(*bytes), input, options);
}

Source open_events(MappedInput bytes, const std::string& input, const SourceOptions& options) {
  if (const char* const why = unfit(options.format, options)) {
    return refused(input, why);
  }
  return row_of(options.format).open(std::move(bytes), input, options);
}

}  // namespace tsomon
