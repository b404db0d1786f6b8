// perf.data as an event source: decoders/perf/events.h in blocks, with symbols.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "monitor/events/event_source.h"
#include "monitor/events/mapped_input.h"

namespace tsomon {

// As open_input(); of the directory that `perf record --threads` writes its `data`.
Result<OpenedInput> open_perf_input(const std::string& path);

// `input` as in messages: where it is a directory, its other files are read, too. Fails as
// perf::read_samples() does.
Result<std::unique_ptr<EventSource>> open_perf_data(MappedInput bytes, const std::string& input,
                                                    const SourceOptions& options);

// The records of a perf.data as text (decoders/perf/listing.h), in the order of time, some lines at
// a time. `path` "-" is standard input. Gives what is wrong with the file.
Result<std::vector<std::string>> list_perf_records(
    const std::string& path, const std::function<void(const std::string&)>& lines);

}  // namespace tsomon
