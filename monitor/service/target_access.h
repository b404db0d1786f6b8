// What the service does that may need a privilege: all of it, and nothing above knows who does it.
//
// Who         direct_service_access(): this process, as its user may. The helper (helper.h), where there is one: it has the
//             privileges, and does no more than the configuration's targets ask for.
// Errors      As ProcessAccess and StartedProgram; kEnvironment: the helper refuses, or has ended.
// Thread-safety: calls may come from several threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/process/process_access.h"
#include "monitor/service/config.h"
#include "monitor/service/idle_process.h"
#include "monitor/service/local_socket.h"
#include "monitor/service/started_program.h"
#include "tso/support/result.h"

namespace tsomon::service {

// Of one target. The folder that connect() is given is the target's.
class TargetAccess : public attach::ProcessAccess {
 public:
  // That the target names by its program or group, the one that began first is the first.
  virtual std::vector<pid_t> processes() = 0;
  virtual Result<StartedProgram> start() = 0;
  // How what start() gave has ended, as waitpid(2) says it; nothing: nobody knows.
  virtual std::optional<int> wait_status(const StartedProgram& ended) = 0;
};

class ServiceAccess {
 public:
  virtual ~ServiceAccess() = default;
  virtual std::unique_ptr<TargetAccess> of(const TargetConfig& target) = 0;
  // The configuration's file, read again.
  virtual ConfigReading read_again() = 0;
  // As IdleProcess::run(). One at a time.
  virtual Result<IdleEnd> run_idle(const IdleBounds& bounds,
                                   const std::vector<std::string>& command,
                                   const std::function<bool()>& stopped) = 0;
  // As ListeningSocket::open().
  virtual Result<ListeningSocket> listen(const ListenAddress& address) {
    return ListeningSocket::open(address);
  }
  // Why nothing can be done any more; empty: it can.
  virtual std::string ended() { return {}; }
};

// `config_file`: as read_trusted_config() has it.
std::unique_ptr<ServiceAccess> direct_service_access(std::string config_file);

// Whether the process is one that the target names by its program or group.
bool is_of(const TargetConfig& target, pid_t pid);
std::vector<pid_t> processes_of(const TargetConfig& target);

}  // namespace tsomon::service
