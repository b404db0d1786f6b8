// Captures of the probe as a source of events (decoders/capture/reader.h).
//
// Thread-safety: none; distinct sources are independent.
#pragma once

#include <memory>
#include <string>

#include "monitor/events/event_source.h"
#include "monitor/events/mapped_input.h"

namespace tsomon {

Result<std::unique_ptr<EventSource>> open_capture(MappedInput bytes, const std::string& input,
                                                  const SourceOptions& options);

}  // namespace tsomon
