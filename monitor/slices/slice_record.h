// A slice of a running program, as a capture (slice_client.h).
//
// Errors      As record_slice(); kUsage, kEnvironment: the file, as CapturePlace (monitor/record/capture_file.h) says.
// Thread-safety: none.
#pragma once

#include <chrono>
#include <string>

#include "monitor/slices/slice_client.h"

namespace tsomon {

// The file replaces a capture, nothing else.
Result<SliceEnd> record_slice_to(pid_t pid, const std::string& folder,
                                 std::chrono::microseconds time, const std::string& output);

}  // namespace tsomon
