#include "monitor/load.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoders/capture/chunks.h"

namespace tsomon {
namespace {

tl::unexpected<Error> unreadable(const char* what, int error) {
  return fail(ErrorKind::kUnreadable, std::string(what) + std::strerror(error));
}

Result<std::string> read_all(int fd) {
  std::string bytes;
  struct stat status {};
  const bool known_size = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) {
      // One byte more than the file has: the end then shows without another growth.
      bytes.resize(known_size && size == 0 ? static_cast<size_t>(status.st_size) + 1
                                           : 2 * size + (size_t{1} << 16));
    }
    const ssize_t got = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return unreadable("cannot be read: ", errno);
    }
    if (got == 0) {
      bytes.resize(size);
      return bytes;
    }
    size += static_cast<size_t>(got);
  }
}

Result<std::string> read_input(const std::string& path) {
  if (path == "-") {
    return read_all(STDIN_FILENO);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return unreadable("cannot be opened: ", errno);
  }
  auto bytes = read_all(fd);
  ::close(fd);
  return bytes;
}

}  // namespace

std::optional<InputFormat> input_format(std::string_view name) {
  if (name == "auto") {
    return InputFormat::kAuto;
  }
  if (name == "capture") {
    return InputFormat::kCapture;
  }
  return std::nullopt;
}

Result<LoadedTrace> load_trace(const std::string& path, InputFormat /*format*/) {
  LoadedTrace loaded;
  loaded.input = path == "-" ? "<stdin>" : path;
  const auto failed = [&](Error error) {
    error.input = loaded.input;
    return tl::unexpected<Error>(std::move(error));
  };
  auto bytes = read_input(path);
  if (!bytes) {
    return failed(bytes.error());
  }
  loaded.format = InputFormat::kCapture;
  auto read = capture::read_capture(*bytes);
  if (!read) {
    return failed(read.error());
  }
  loaded.trace = std::move(read->trace);
  loaded.modules = std::move(read->modules);
  loaded.warnings = std::move(read->problems);
  return loaded;
}

}  // namespace tsomon
