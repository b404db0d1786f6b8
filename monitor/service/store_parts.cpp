#include "monitor/service/store_parts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "tso/support/printable.h"

namespace tsomon::service {

namespace fs = std::filesystem;

tl::unexpected<Error> store_error(ErrorKind kind, const fs::path& path, std::string message) {
  return tl::unexpected<Error>(Error{kind, printable(path.string()), {}, std::move(message)});
}

tl::unexpected<Error> store_system_error(const fs::path& path, const char* what) {
  return store_error(ErrorKind::kEnvironment, path,
                     fmt::format("cannot be {}: {}", what, std::strerror(errno)));
}

int64_t slice_number(const std::string& name) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && number > 0 &&
                 rest == name.data() + name.size() - kSliceSuffix.size() &&
                 name.ends_with(kSliceSuffix)
             ? number
             : 0;
}

uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> set_aside_files(const fs::path& folder) {
  std::vector<fs::path> files = files_in(folder);
  std::erase_if(files, [](const fs::path& file) {
    return file.filename().string().find(kDamagedMark) == std::string::npos;
  });
  return files;
}

}  // namespace tsomon::service
