// The file that a capture is written to, before the program starts.
//
// Purpose     `tsomon record -o` and `tsomon run --save` replace captures and nothing else. What
//             cannot be written is told here, apart from a program that does not record.
// Errors      kUsage: FILE is a device, a socket, a folder, ...; kEnvironment: it is not a capture,
//             cannot be replaced or cannot be written.
// Thread-safety: none.
#pragma once

#include <filesystem>

#include "tso/result.h"

namespace tsomon {

// By its first bytes.
bool is_capture(const std::filesystem::path& path);

// Makes place for a capture: there is no file afterwards. Gives the path to write to: what a
// symbolic link points to is replaced, not the link. `pipe`: a FIFO is fine, too; it is not opened.
Result<std::filesystem::path> place_for_capture(const std::filesystem::path& path,
                                                bool pipe = false);

}  // namespace tsomon
