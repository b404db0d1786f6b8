#include "monitor/process/source_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace tsomon {

std::optional<std::string> read_source_file(const std::string& path, size_t most, LastLink link,
                                            struct stat* status) {
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  const int descriptor =
      ::open(path.c_str(), link == LastLink::kRefuse ? flags | O_NOFOLLOW : flags);
  if (descriptor < 0) {
    return std::nullopt;
  }
  std::optional<std::string> text;
  struct stat of_file = {};
  if (::fstat(descriptor, &of_file) == 0 && S_ISREG(of_file.st_mode) &&
      of_file.st_size <= static_cast<off_t>(most)) {
    text.emplace(static_cast<size_t>(of_file.st_size), '\0');
    size_t have = 0;
    while (have < text->size()) {
      const ssize_t got = ::read(descriptor, text->data() + have, text->size() - have);
      if (got <= 0) {
        break;
      }
      have += static_cast<size_t>(got);
    }
    text->resize(have);
  }
  ::close(descriptor);
  if (status != nullptr) {
    *status = of_file;
  }
  return text;
}

}  // namespace tsomon
