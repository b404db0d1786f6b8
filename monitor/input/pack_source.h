// Packs (monitor/process/packed_files.h) as a source of events: that of the recording in them.
//
// Thread-safety: none; distinct sources are independent.
#pragma once

#include <memory>
#include <string>

#include "monitor/events/event_source.h"
#include "monitor/events/mapped_input.h"

namespace tsomon {

// kMalformed also for a pack whose recording is neither a capture nor a perf.data.
Result<std::unique_ptr<EventSource>> open_pack(MappedInput bytes, const std::string& input,
                                               const SourceOptions& options);

}  // namespace tsomon
