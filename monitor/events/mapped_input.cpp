#include "monitor/events/mapped_input.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/events/read_input.h"
#include "tso/support/open_file.h"
#include "tso/support/stoppable_read.h"
#include "tso/support/work.h"

namespace tsomon {
namespace {

// The rest of the input in a temporary file.
Result<Descriptor> copy_to_file(int fd) {
  auto file = temporary_file();
  if (!file) {
    return file;
  }
  std::vector<char> buffer(size_t{1} << 18);
  for (uint64_t size = 0;;) {
    const ssize_t got = read_unless_stopped(fd, buffer.data(), buffer.size());
    if (got < 0) {
      return fail(ErrorKind::kUnreadable, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    if (got == 0) {
      return file;
    }
    if (auto written = write_at(*file, buffer.data(), static_cast<size_t>(got), size); !written) {
      return tl::unexpected<Error>(written.error());
    }
    size += static_cast<uint64_t>(got);
  }
}

}  // namespace

Result<OpenedInput> open_input(const std::string& path) {
  const bool standard = path == "-";
  const int fd = standard ? STDIN_FILENO : open_input_file(path);
  if (fd < 0) {
    return tl::unexpected<Error>(Error{ErrorKind::kUnreadable,
                                       input_name(path),
                                       {},
                                       fmt::format("cannot be opened: {}", std::strerror(errno))});
  }
  struct stat status {};
  const bool regular =
      ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::lseek(fd, 0, SEEK_CUR) == 0;
  return OpenedInput{Descriptor(fd, !standard), regular};
}

Result<MappedInput> MappedInput::of(Descriptor descriptor, bool regular) {
  if (!regular) {
    auto copy = copy_to_file(descriptor.get());
    if (!copy) {
      return tl::unexpected<Error>(copy.error());
    }
    descriptor = std::move(*copy);
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0 || status.st_size == 0) {
    return MappedInput();
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (!regular) {
    more_input(size);
  }
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (address == MAP_FAILED) {
    return fail(ErrorKind::kUnreadable, fmt::format("cannot be mapped: {}", std::strerror(errno)));
  }
  return MappedInput(address, size);
}

MappedInput::MappedInput(MappedInput&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedInput::~MappedInput() {
  if (address_ != nullptr) {
    ::munmap(address_, size_);
  }
}

void MappedInput::release() const {
  if (address_ != nullptr) {
    ::madvise(address_, size_, MADV_DONTNEED);
  }
}

}  // namespace tsomon
