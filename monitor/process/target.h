// The process that is attached to, as /proc shows it.
//
// Files       Modules are opened through /proc/PID/map_files, which gives the very file that is
//             mapped: also one that was replaced or deleted since, or that lies in another mount
//             namespace. Where that is not permitted, by their path below /proc/PID/root. All through a ProcessAccess.
// Identity    exec replaces everything but the number of the process; same_program() tells.
// Errors      kUnreadable: no such process. kUsage: a process that cannot be watched (32 bits, a
//             kernel thread, this process). kEnvironment: no permission, or another PID namespace
//             than this process's, when that is not the first one; with the remedy.
// Misses      Code outside files (generated at run time), the vdso.
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "monitor/process/process_access.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // in the file
  bool executable = false;
  bool shared = false;  // with other processes
  std::string device;   // "fd:01"
  uint64_t inode = 0;   // 0: no file
  std::string path;     // as the process sees it; " (deleted)" is left in
};

// The namespace that this process numbers processes and threads in.
struct PidNamespace {
  uint64_t device = 0;
  uint64_t inode = 0;
};
std::optional<PidNamespace> nested_pid_namespace();  // nothing: the first one, which sees all

// All mappings, ascending; kUnreadable, kEnvironment.
Result<std::vector<Mapping>> read_mappings(pid_t pid, ProcessAccess& access = direct_access());
// That a file of the process cannot be opened, with what would help.
tl::unexpected<Error> cannot_look_at(pid_t pid, int error);

// A file with mapped code.
struct Module {
  std::string path;   // as the process sees it
  std::string name;   // its last part
  std::string file;   // what this process opens it by, while `descriptor` is open
  std::string shown;  // a path by which debugging data is looked for
  Descriptor descriptor;
  std::string device;
  uint64_t inode = 0;
  std::vector<Mapping> code;

  // Address in the file of code at `address` in memory is address - bias. Needs the program headers
  // (elf_image.h); this is the start in memory of the byte `offset` of the file, 0 if not mapped.
  uint64_t address_of(uint64_t offset) const;
};

// The processor time of a process, in seconds: that of all its threads, also of those that have ended. 0: it has ended.
double processor_seconds(pid_t pid);

class Target {
 public:
  // `access` is there as long as this.
  static Result<Target> open(pid_t pid, ProcessAccess& access = direct_access());

  pid_t pid() const { return pid_; }
  const std::string& executable() const { return executable_; }
  const std::vector<Module>& modules() const { return modules_; }  // the executable first
  int descriptor() const { return pidfd_.get(); }  // readable when the process has ended

  std::vector<pid_t> threads() const;
  bool ended() const;
  // False after exec.
  bool same_program() const;
  bool in_system_call(uint32_t thread) const;  // sleeping in one, not running
  double processor_seconds() const { return attach::processor_seconds(pid_); }
  // Code mapped from where it was not before.
  bool mappings_changed() const;
  // A file that the process may load later, as the process would name it: a module without code
  // until then. kUnreadable.
  Result<bool> add_file(const std::string& path);
  // Its memory is one thread's, and not shared with other processes, now. (A process that shares it
  // without being a thread, by clone(CLONE_VM), is not noticed.)
  bool alone() const;
  // Reads the modules again; those that are still there keep their place in modules().
  void refresh();

 private:
  Target() = default;
  void add_modules(const std::vector<Mapping>& mappings);

  pid_t pid_ = -1;
  ProcessAccess* access_ = nullptr;
  Descriptor pidfd_;
  std::string executable_;
  std::string identity_;
  std::vector<Module> modules_;
};

}  // namespace tsomon::attach
