#include "monitor/capture_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"

namespace tsomon {
namespace {

namespace fs = std::filesystem;

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "something special";
  }
}

}  // namespace

bool is_capture(const fs::path& path) {
  std::array<char, 128> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return capture::looks_like_capture({head.data(), static_cast<size_t>(file.gcount())});
}

Result<fs::path> place_for_capture(const fs::path& path, bool pipe) {
  const auto problem = [&](ErrorKind kind, std::string message) {
    return tl::unexpected<Error>(Error{kind, path.string(), {}, std::move(message)});
  };
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  const bool existed = fs::exists(fs::file_status(type));
  if (existed && type != fs::file_type::regular) {
    if (pipe && type == fs::file_type::fifo) {
      return path;
    }
    return problem(
        ErrorKind::kUsage,
        fmt::format("is {}; a capture needs a file: choose another name", kind_of(type)));
  }
  fs::path target = path;
  if (existed && fs::is_symlink(path, error)) {
    target = fs::canonical(path, error);
    if (error) {
      return problem(ErrorKind::kEnvironment,
                     fmt::format("cannot be replaced: {}", error.message()));
    }
  }
  if (existed) {
    if (fs::file_size(target, error) != 0 && !is_capture(target)) {
      return problem(ErrorKind::kEnvironment,
                     "exists and is not a capture; it is not overwritten. Remove it or choose "
                     "another file");
    }
    if (!fs::remove(target, error)) {
      return problem(ErrorKind::kEnvironment,
                     fmt::format("cannot be replaced: {}", error.message()));
    }
  }
  const int fd = ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    return problem(ErrorKind::kEnvironment,
                   fmt::format("cannot be written: {}", std::strerror(errno)));
  }
  ::close(fd);
  fs::remove(target, error);
  return target;
}

}  // namespace tsomon
