// What is needed of another process and may need a privilege: its files, and a connection to its control socket.
//
// Purpose     Who watches asks here, and nowhere else. direct_access() asks the kernel itself, with the privileges that this
//             process has; the service, which has none, asks a helper (monitor/service/helper.h).
// Privileges  Executable, mappings and files of another user's process: CAP_SYS_PTRACE, and what may read the file. Its
//             control socket: root, or its user.
// Races       A number may have become another process's meanwhile: connect() compares with who answers, the others do not.
// Errors      kUnreadable: no such process. kEnvironment: it may not be looked at, or does not answer; with the reason.
// Thread-safety: calls may come from several threads.
#pragma once

#include <string>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon::attach {

struct Mapping;  // target.h

class ProcessAccess {
 public:
  virtual ~ProcessAccess() = default;
  // Read-only.
  virtual Result<Descriptor> executable(pid_t pid) = 0;
  virtual Result<Descriptor> mappings(pid_t pid) = 0;  // /proc/PID/maps
  // The very file of an executable mapping, also in another mount namespace; deleted ones where map_files (proc(5)) may be followed
  // (CAP_CHECKPOINT_RESTORE), else the program's own alone.
  virtual Result<Descriptor> code(pid_t pid, const Mapping& mapping) = 0;
  // As connect_to_control() (control_socket.h).
  virtual Result<Descriptor> connect(pid_t pid, const std::string& folder) = 0;
};

ProcessAccess& direct_access();

}  // namespace tsomon::attach
