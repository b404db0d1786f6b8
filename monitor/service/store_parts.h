// What the files store_*.cpp have in common: the files of a store's folder, and errors.
//
// Complexity  O(files of the folder) for lists. Thread-safety: none needed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tso/support/result.h"

namespace tsomon::service {

inline constexpr std::string_view kSliceSuffix = ".tsomon";
inline constexpr std::string_view kDamagedMark = ".damaged-";

tl::unexpected<Error> store_error(ErrorKind kind, const std::filesystem::path& path,
                                  std::string message);
// kEnvironment: what errno says. `what`: "opened".
tl::unexpected<Error> store_system_error(const std::filesystem::path& path, const char* what);

// "12.tsomon" is 12; 0: it is no slice's.
int64_t slice_number(const std::string& name);
// 0: it is not there.
uint64_t bytes_of(const std::filesystem::path& path);
// In the order of their names.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder);
// Databases that were damaged.
std::vector<std::filesystem::path> set_aside_files(const std::filesystem::path& folder);

}  // namespace tsomon::service
