// Records as text, one line each, for people and for comparison: the lines of `perf script -D`
// without its dump of the bytes.
//
//   CPU TIME OFFSET [SIZE]: PERF_RECORD_NAME and what it says
//
// CPU and TIME only where the events record them. Under a sample its call chain and registers.
// Complexity  Linear in the record. Thread-safety: pure function.
#pragma once

#include <string>

#include "decoders/perf/info.h"
#include "decoders/perf/record.h"

namespace tsomon::perf {

void append_listing(const FileInfo& info, const Record& record, std::string& text);

// What the file says about itself, each line with "# " in front.
std::string header_listing(const FileInfo& info);

}  // namespace tsomon::perf
