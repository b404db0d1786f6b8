#include "monitor/process/descriptor.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tsomon {
namespace {

tl::unexpected<Error> cannot(const char* what, int error) {
  std::error_code none;
  return fail(
      ErrorKind::kEnvironment,
      fmt::format("a temporary file in {} cannot be {}: {}; set TMPDIR to another folder",
                  std::filesystem::temp_directory_path(none).string(), what, std::strerror(error)));
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), owned_(other.owned_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(owned_, other.owned_);
  return *this;
}

Descriptor::~Descriptor() {
  if (owned_ && fd_ >= 0) {
    ::close(fd_);
  }
}

Result<Descriptor> temporary_file() {
  std::error_code none;
  std::string path = (std::filesystem::temp_directory_path(none) / "tsomon_XXXXXX").string();
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) {
    return cannot("made", errno);
  }
  ::unlink(path.c_str());
  return Descriptor(fd);
}

Result<bool> write_at(const Descriptor& file, const void* bytes, size_t size, uint64_t offset) {
  const char* at = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t done = ::pwrite(file.get(), at, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      return cannot("written", done < 0 ? errno : ENOSPC);
    }
    at += done;
    size -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return true;
}

}  // namespace tsomon
