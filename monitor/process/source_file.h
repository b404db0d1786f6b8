// A source file, as a whole.
//
// Purpose     Names of source files come from an input: only regular files are read, without blocking, and no more than
//             is asked for.
// Complexity  O(size). Thread-safety: pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace tsomon {

enum class LastLink { kFollow, kRefuse };

// nullopt: it cannot be read, is no regular file, or has more than `most` bytes. `*status`: of the file, nullptr: not wanted.
std::optional<std::string> read_source_file(const std::string& path, size_t most, LastLink link,
                                            struct stat* status = nullptr);

}  // namespace tsomon
