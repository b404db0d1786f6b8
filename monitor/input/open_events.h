// The one way from a path to a source of events, and the register of the formats that there are.
//
// A format     One row of the table in open_events.cpp: its name for --format and how it is opened;
//             content_format.h recognises it by its first bytes.
// Errors      kUnreadable, kMalformed with the place in the input; kUsage for an axe trace, which
//             is no stream of events, and for options that the format does not have; kEnvironment
//             when there is no room for a temporary file.
// Thread-safety: none needed; distinct sources are independent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "monitor/events/event_source.h"
#include "monitor/events/mapped_input.h"

namespace tsomon {

// The name as --format takes it; nothing for an unknown one.
std::optional<InputFormat> input_format(std::string_view name);

// `path` "-" is standard input.
Result<std::unique_ptr<EventSource>> open_events(const std::string& path,
                                                 const SourceOptions& options = {});
// Of bytes that are there, a capture or perf.data, as options.format says.
Result<std::unique_ptr<EventSource>> open_events(MappedInput bytes, const std::string& input,
                                                 const SourceOptions& options);
// Of an input that has been opened: `path` as it was named.
Result<std::unique_ptr<EventSource>> open_events(OpenedInput opened, const std::string& path,
                                                 const SourceOptions& options = {});

}  // namespace tsomon
