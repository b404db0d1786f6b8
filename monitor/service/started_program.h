// A program that the service starts, so that it can be asked to be watched.
//
// Purpose     TSOMON_OPTIONS gets control=on, or the folder, behind what it has. Standard input is /dev/null; what the program
//             writes goes to standard error: standard output carries findings.
// Signals     None is blocked in it that was not before, and all have their defaults.
// As whom     Another user's program has no capability and can get none (account.h), and is asked to end when the process that
//             started it does: that has one thread.
// The end     An object that goes asks the program to end (SIGTERM), waits for a fifth of a second, and leaves it then.
// Errors      kUsage: it is not there. kEnvironment: it cannot be started. With the reason.
// Thread-safety: one thread for each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/account.h"
#include "tso/support/result.h"

namespace tsomon::service {

class StartedProgram {
 public:
  // `command` is not empty; its first word is looked up in PATH. `control`: as TargetConfig::control.
  // `account`: whose it is; none: this process's user's.
  static Result<StartedProgram> start(const std::vector<std::string>& command,
                                      const std::string& control, const Account* account = nullptr);
  // One that another process has started. `handle`: of pidfd_open(2).
  StartedProgram(pid_t pid, Descriptor handle) : pid_(pid), handle_(std::move(handle)) {}
  StartedProgram(StartedProgram&& other) noexcept;
  StartedProgram& operator=(StartedProgram&&) = delete;
  ~StartedProgram();

  pid_t pid() const { return pid_; }
  const Descriptor& handle() const { return handle_; }
  bool has_ended();
  // Of waitpid(2), once it has ended; -1: another process has started it.
  int wait_status() const { return status_; }

 private:
  pid_t pid_;
  Descriptor handle_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace tsomon::service
