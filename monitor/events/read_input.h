// The bytes of a file or of standard input.
//
// Errors      kUnreadable with the input's name and the system's reason; also when there are more
//             than `max_bytes`, so that no device or pipe without end fills the memory.
// Memory      The bytes, twice that while a pipe is read.
// Thread-safety: standard input apart, calls are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tso/support/result.h"

namespace tsomon {

// What messages call the input: the path, or "<stdin>" for "-".
std::string input_name(const std::string& path);

// `path` "-" is standard input.
Result<std::string> read_input(const std::string& path, size_t max_bytes = SIZE_MAX);

}  // namespace tsomon
