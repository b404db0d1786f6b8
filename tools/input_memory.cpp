#include "tools/input_memory.h"

#include <filesystem>
#include <system_error>

namespace tsomon {
namespace {

namespace fs = std::filesystem;

uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  return error ? 0 : size;
}

}  // namespace

uint64_t bytes_of_inputs(const std::vector<std::string>& files) {
  uint64_t all = 0;
  for (const std::string& file : files) {
    all += bytes_of(file);
    std::error_code error;
    if (!fs::is_directory(file, error)) {
      continue;
    }
    for (fs::directory_iterator part(file, error), end; !error && part != end;
         part.increment(error)) {
      all += bytes_of(part->path());
    }
  }
  return all;
}

}  // namespace tsomon
