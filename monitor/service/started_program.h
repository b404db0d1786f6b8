// A program that the service starts, so that it can be asked to be watched.
//
// Purpose     TSOMON_OPTIONS gets control=on, or the folder, behind what it has. Standard input is /dev/null; what the program
//             writes goes to standard error: standard output carries findings.
// Signals     None is blocked in it that was not before, and all have their defaults.
// The end     An object that goes asks the program to end (SIGTERM), waits for a fifth of a second, and leaves it then.
// Errors      kUsage: it is not there. kEnvironment: it cannot be started. With the reason.
// Thread-safety: one thread for each.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "tso/support/result.h"

namespace tsomon::service {

class StartedProgram {
 public:
  // `command` is not empty; its first word is looked up in PATH. `control`: as TargetConfig::control.
  static Result<StartedProgram> start(const std::vector<std::string>& command,
                                      const std::string& control);
  StartedProgram(StartedProgram&& other) noexcept;
  StartedProgram& operator=(StartedProgram&&) = delete;
  ~StartedProgram();

  pid_t pid() const { return pid_; }
  bool has_ended();
  int wait_status() const { return status_; }  // of waitpid(2), once it has

 private:
  explicit StartedProgram(pid_t pid) : pid_(pid) {}
  pid_t pid_;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace tsomon::service
