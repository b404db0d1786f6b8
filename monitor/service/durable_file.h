// Files that are there whole or not at all, whenever the machine stops.
//
// Purpose     Written as PATH.tmp, and renamed. A file of that name that is left behind is the next one's.
// Errors      kEnvironment: the path and the system's reason; nothing is left of it then.
// Thread-safety: different paths.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "tso/support/result.h"

namespace tsomon::service {

inline constexpr std::string_view kTemporarySuffix = ".tmp";

// What the descriptor, a regular file, has; on the disk when it returns, the name too. How many bytes.
Result<uint64_t> copy_to_disk(int from, const std::filesystem::path& path);

// Whoever reads it sees all of it, or all of what was there before; the disk may have it later.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text);

// Names that were made or removed in the folder are on the disk when it returns.
void sync_folder(const std::filesystem::path& folder);

}  // namespace tsomon::service
