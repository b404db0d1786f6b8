#include "monitor/process/target.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "monitor/process/running_programs.h"

namespace tsomon::attach {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPermission = "run as root, or with CAP_SYS_PTRACE, CAP_BPF and CAP_PERFMON";

std::string proc(pid_t pid, std::string_view name) { return fmt::format("/proc/{}/{}", pid, name); }

// The fields of /proc/PID/stat after the name: [0] is the state, field 3 of proc(5).
std::vector<std::string> stat_fields(pid_t pid) {
  std::ifstream file(proc(pid, "stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  std::vector<std::string> fields;
  if (name_end != std::string::npos) {
    std::istringstream rest(line.substr(name_end + 1));
    for (std::string field; rest >> field;) {
      fields.push_back(field);
    }
  }
  return fields;
}

// What another program in the same process has differently: where code and stack begin, and the
// file. Without address randomisation a program that executes itself is not told apart.
std::string identity_of(pid_t pid) {
  constexpr size_t kStart = 22 - 3;  // field numbers of proc(5)
  constexpr size_t kCode = 26 - 3;
  constexpr size_t kStack = 28 - 3;
  const std::vector<std::string> fields = stat_fields(pid);
  struct stat exe {};
  if (fields.size() <= kStack || ::stat(proc(pid, "exe").c_str(), &exe) != 0) {
    return {};
  }
  return fmt::format("{} {} {} {}:{}", fields[kStart], fields[kCode], fields[kStack], exe.st_dev,
                     exe.st_ino);
}

// A path at which this process finds the same file; the debugger's data lies beside it.
std::string path_of_file(pid_t pid, const Mapping& mapping, const Descriptor& file) {
  struct stat wanted {};
  if (::fstat(file.get(), &wanted) == 0) {
    for (const std::string& path : {mapping.path, proc(pid, "root") + mapping.path}) {
      struct stat found {};
      if (::stat(path.c_str(), &found) == 0 && found.st_ino == wanted.st_ino &&
          found.st_dev == wanted.st_dev) {
        return path;
      }
    }
  }
  return fmt::format("/proc/self/fd/{}", file.get());
}

Result<bool> check_class(pid_t pid, const Descriptor& file) {
  Elf64_Ehdr header{};
  if (::pread(file.get(), &header, sizeof header, 0) < static_cast<ssize_t>(sizeof(Elf32_Ehdr)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return fail(ErrorKind::kUsage, fmt::format("the program of process {} is not ELF", pid));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return fail(ErrorKind::kUsage,
                fmt::format("process {} is not a 64-bit x86 program: 32-bit programs cannot be "
                            "watched; attach to a 64-bit build of it",
                            pid));
  }
  return true;
}

// All that it holds; a file of /proc gives a page at a time.
Result<std::string> text_of_file(pid_t pid, const Descriptor& file) {
  std::string text;
  std::array<char, 16384> part{};
  for (ssize_t size = 0; (size = ::read(file.get(), part.data(), part.size())) != 0;) {
    if (size < 0) {
      return cannot_look_at(pid, errno);
    }
    text.append(part.data(), static_cast<size_t>(size));
  }
  return text;
}

}  // namespace

tl::unexpected<Error> cannot_look_at(pid_t pid, int error) {
  if (error == ENOENT || error == ESRCH) {
    return fail(ErrorKind::kUnreadable, fmt::format("there is no process {}", pid));
  }
  return fail(ErrorKind::kEnvironment, fmt::format("process {} cannot be looked at: {}; {}", pid,
                                                   std::strerror(error), kPermission));
}

std::optional<PidNamespace> nested_pid_namespace() {
  constexpr uint64_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
  struct stat found {};
  if (::stat("/proc/self/ns/pid", &found) != 0 || found.st_ino == kFirst) {
    return std::nullopt;
  }
  return PidNamespace{found.st_dev, found.st_ino};
}

Result<std::vector<Mapping>> read_mappings(pid_t pid, ProcessAccess& access) {
  const auto text = access.mappings(pid).and_then(
      [&](const Descriptor& file) { return text_of_file(pid, file); });
  if (!text) {
    return tl::unexpected<Error>(text.error());
  }
  std::istringstream file(*text);
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Mapping mapping;
    char dash = 0;
    std::string permissions;
    fields >> std::hex >> mapping.begin >> dash >> mapping.end >> permissions >> mapping.offset >>
        mapping.device >> std::dec >> mapping.inode;
    if (!fields) {
      continue;
    }
    std::getline(fields >> std::ws, mapping.path);
    mapping.executable = permissions.find('x') != std::string::npos;
    mapping.shared = permissions.find('s') != std::string::npos;
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

uint64_t Module::address_of(uint64_t offset) const {
  for (const Mapping& mapping : code) {
    if (mapping.offset <= offset && offset - mapping.offset < mapping.end - mapping.begin) {
      return mapping.begin + (offset - mapping.offset);
    }
  }
  return 0;
}

Result<Target> Target::open(pid_t pid, ProcessAccess& access) {
  if (pid <= 0 || ::access(proc(pid, "status").c_str(), F_OK) != 0) {
    return cannot_look_at(pid, ENOENT);
  }
  if (pid == ::getpid()) {
    return fail(ErrorKind::kUsage, "a monitor cannot watch itself");
  }
  const std::string leader = status_field(pid, "Tgid");
  if (!leader.empty() && leader != std::to_string(pid)) {
    return fail(ErrorKind::kUsage,
                fmt::format("{} is a thread of process {}: give that number", pid, leader));
  }
  const auto program = access.executable(pid);
  if (!program) {
    if (program.error().kind == ErrorKind::kUnreadable) {
      return fail(
          ErrorKind::kUsage,
          fmt::format("process {} has no program: it is a kernel thread, or it is ending", pid));
    }
    return tl::unexpected<Error>(program.error());
  }
  if (auto checked = check_class(pid, *program); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  Target target;
  target.pid_ = pid;
  target.access_ = &access;
  target.pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!target.pidfd_.is_open()) {
    return cannot_look_at(pid, errno);
  }
  std::array<char, 4096> path{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", program->get()).c_str(), path.data(), path.size());
  target.executable_ = std::string(path.data(), size > 0 ? static_cast<size_t>(size) : 0);
  target.identity_ = identity_of(pid);
  const auto mappings = read_mappings(pid, access);
  if (!mappings) {
    return tl::unexpected<Error>(mappings.error());
  }
  if (mappings->empty()) {
    return cannot_look_at(pid, EACCES);
  }
  // It has a number in each namespace from this one on.
  if (nested_pid_namespace() &&
      status_field(pid, "NSpid").find_first_of(" \t") != std::string::npos) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("process {} numbers its threads in another PID namespace; run this in "
                            "the first one (on the host), or in that of the process",
                            pid));
  }
  target.add_modules(*mappings);
  if (target.modules_.empty()) {
    return fail(ErrorKind::kEnvironment,
                fmt::format("the code of process {} cannot be opened; {}", pid, kPermission));
  }
  std::stable_partition(target.modules_.begin(), target.modules_.end(),
                        [&](const Module& module) { return module.path == target.executable_; });
  return target;
}

void Target::add_modules(const std::vector<Mapping>& mappings) {
  for (Module& module : modules_) {
    module.code.clear();
  }
  for (const Mapping& mapping : mappings) {
    if (!mapping.executable || mapping.inode == 0) {
      continue;
    }
    auto known = std::find_if(modules_.begin(), modules_.end(), [&](const Module& module) {
      // Named in advance: layered file systems have numbers of their own in the mappings.
      const bool named = module.code.empty() && module.path == mapping.path;
      return module.inode == mapping.inode && (module.device == mapping.device || named);
    });
    if (known != modules_.end()) {
      known->device = mapping.device;
    } else {
      Module module;
      auto opened = access_->code(pid_, mapping);
      if (!opened) {
        continue;
      }
      module.descriptor = std::move(*opened);
      module.path = mapping.path;
      module.name = mapping.path.substr(mapping.path.rfind('/') + 1);
      module.file = fmt::format("/proc/self/fd/{}", module.descriptor.get());
      module.shown = path_of_file(pid_, mapping, module.descriptor);
      module.device = mapping.device;
      module.inode = mapping.inode;
      modules_.push_back(std::move(module));
      known = modules_.end() - 1;
    }
    known->code.push_back(mapping);
  }
}

Result<bool> Target::add_file(const std::string& path) {
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal();
  Module module;
  for (const std::string& name : {proc(pid_, "root") + absolute, absolute}) {
    module.descriptor = Descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (module.descriptor.is_open()) {
      break;
    }
  }
  struct stat found {};
  if (!module.descriptor.is_open() || ::fstat(module.descriptor.get(), &found) != 0 ||
      !S_ISREG(found.st_mode)) {
    return fail(ErrorKind::kUnreadable,
                fmt::format("{}: no file that process {} could load", path, pid_));
  }
  module.device = fmt::format("{:02x}:{:02x}", major(found.st_dev), minor(found.st_dev));
  module.inode = found.st_ino;
  module.path = fs::canonical(absolute, error);
  if (error) {
    module.path = absolute;
  }
  if (std::any_of(modules_.begin(), modules_.end(), [&](const Module& other) {
        return other.inode == module.inode &&
               (other.device == module.device || other.path == module.path);
      })) {
    return true;
  }
  module.name = module.path.substr(module.path.rfind('/') + 1);
  module.file = fmt::format("/proc/self/fd/{}", module.descriptor.get());
  Mapping mapping;
  mapping.path = module.path;
  module.shown = path_of_file(pid_, mapping, module.descriptor);
  modules_.push_back(std::move(module));
  return true;
}

bool Target::alone() const {
  const auto mappings = read_mappings(pid_, *access_);
  return mappings && threads().size() == 1 &&
         std::none_of(mappings->begin(), mappings->end(),
                      [](const Mapping& mapping) { return mapping.shared; });
}

std::vector<pid_t> Target::threads() const {
  std::vector<pid_t> all;
  std::error_code error;
  for (fs::directory_iterator entry(proc(pid_, "task"), error), end; !error && entry != end;
       entry.increment(error)) {
    all.push_back(static_cast<pid_t>(std::strtol(entry->path().filename().c_str(), nullptr, 10)));
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool Target::ended() const {
  pollfd state{pidfd_.get(), POLLIN, 0};
  return ::poll(&state, 1, 0) == 1;
}

bool Target::same_program() const {
  const std::string now = identity_of(pid_);
  return now.empty() || identity_.empty() || now == identity_;
}

// /proc says "running", or -1, otherwise.
bool Target::in_system_call(uint32_t thread) const {
  const Descriptor file(
      ::open(proc(pid_, fmt::format("task/{}/syscall", thread)).c_str(), O_RDONLY | O_CLOEXEC));
  char first = 0;
  return file.is_open() && ::read(file.get(), &first, 1) == 1 && first >= '0' && first <= '9';
}

double processor_seconds(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

bool Target::mappings_changed() const {
  const auto mappings = read_mappings(pid_, *access_);
  if (!mappings || mappings->empty()) {
    return false;  // it ends
  }
  size_t code = 0;
  for (const Mapping& mapping : *mappings) {
    if (!mapping.executable || mapping.inode == 0) {
      continue;
    }
    ++code;
    const bool known = std::any_of(modules_.begin(), modules_.end(), [&](const Module& module) {
      return module.inode == mapping.inode && module.device == mapping.device &&
             std::any_of(module.code.begin(), module.code.end(), [&](const Mapping& other) {
               return other.begin == mapping.begin && other.offset == mapping.offset;
             });
    });
    if (!known) {
      return true;
    }
  }
  size_t before = 0;
  for (const Module& module : modules_) {
    before += module.code.size();
  }
  return code != before;
}

void Target::refresh() {
  if (const auto mappings = read_mappings(pid_, *access_); mappings && !mappings->empty()) {
    add_modules(*mappings);
  }
}

}  // namespace tsomon::attach
