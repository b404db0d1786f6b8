#include "monitor/process/process_access.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "monitor/process/control_socket.h"
#include "monitor/process/target.h"

namespace tsomon::attach {
namespace {

// The process may have put a pipe in a file's place: nobody waits for that.
Result<Descriptor> opened(pid_t pid, const std::string& name) {
  Descriptor file(::open(fmt::format("/proc/{}/{}", pid, name).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return file.is_open() ? Result<Descriptor>(std::move(file)) : cannot_look_at(pid, errno);
}

class DirectAccess : public ProcessAccess {
 public:
  Result<Descriptor> executable(pid_t pid) override { return opened(pid, "exe"); }
  Result<Descriptor> mappings(pid_t pid) override { return opened(pid, "maps"); }
  Result<Descriptor> code(pid_t pid, const Mapping& mapping) override {
    auto exact = opened(pid, fmt::format("map_files/{:x}-{:x}", mapping.begin, mapping.end));
    if (exact) {
      return exact;
    }
    // Links in map_files need more privileges; the program itself is also there where its file is deleted, or replaced.
    for (const std::string& name : {std::string("exe"), "root" + mapping.path}) {
      auto file = opened(pid, name);
      struct stat found {};
      if (file && ::fstat(file->get(), &found) == 0 && S_ISREG(found.st_mode) &&
          found.st_ino == mapping.inode) {
        return file;
      }
    }
    return cannot_look_at(pid, ENOENT);
  }
  Result<Descriptor> connect(pid_t pid, const std::string& folder) override {
    return connect_to_control(pid, folder);
  }
};

}  // namespace

ProcessAccess& direct_access() {
  static DirectAccess access;
  return access;
}

}  // namespace tsomon::attach
