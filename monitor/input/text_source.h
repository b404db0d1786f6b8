// Text traces (STD) as a source of events: decoders/std, with lines out of the order of time put
// back into it.
//
// Thread-safety: none; distinct sources are independent.
#pragma once

#include <memory>
#include <string>

#include "monitor/events/event_source.h"
#include "monitor/process/descriptor.h"

namespace tsomon {

// `waits`: reading may have to wait for a writer, as from a pipe.
std::unique_ptr<EventSource> open_text(Descriptor descriptor, std::string input, EventOrder order,
                                       bool waits);

}  // namespace tsomon
