#include "monitor/service/durable_file.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/process/descriptor.h"

namespace tsomon::service {
namespace {

// Gone unless it was renamed.
class Temporary {
 public:
  Temporary(const std::filesystem::path& path, mode_t mode)
      : path_(path),
        temporary_(path.string() + std::string(kTemporarySuffix)),
        file_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                     mode)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (file_.is_open() && !renamed_) {
      ::unlink(temporary_.c_str());
    }
  }

  const Descriptor& file() const { return file_; }
  bool rename() {
    renamed_ = ::rename(temporary_.c_str(), path_.c_str()) == 0;
    return renamed_;
  }
  tl::unexpected<Error> problem(const char* what) const {
    return tl::unexpected<Error>(
        Error{ErrorKind::kEnvironment,
              path_.string(),
              {},
              fmt::format("cannot be {}: {}", what, std::strerror(errno))});
  }

 private:
  std::filesystem::path path_;
  std::string temporary_;
  Descriptor file_;
  bool renamed_ = false;
};

}  // namespace

Result<uint64_t> copy_to_disk(int from, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(from, &status) != 0) {
    status.st_size = 0;
  }
  Temporary to(path, 0600);
  if (!to.file().is_open()) {
    return to.problem("made");
  }
  off_t at = 0;
  while (at < status.st_size) {
    const ssize_t done =
        ::sendfile(to.file().get(), from, &at, static_cast<size_t>(status.st_size - at));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      errno = done == 0 ? EIO : errno;
      return to.problem("written");
    }
  }
  if (::fsync(to.file().get()) != 0) {
    return to.problem("written");
  }
  if (!to.rename()) {
    return to.problem("renamed");
  }
  sync_folder(path.parent_path());
  return static_cast<uint64_t>(at);
}

Result<void> replace_file(const std::filesystem::path& path, std::string_view text) {
  Temporary to(path, 0644);
  if (!to.file().is_open()) {
    return to.problem("made");
  }
  if (const auto written = write_at(to.file(), text.data(), text.size(), 0); !written) {
    return to.problem("written");
  }
  return to.rename() ? Result<void>() : to.problem("renamed");
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.is_open()) {
    ::fsync(descriptor.get());
  }
}

}  // namespace tsomon::service
