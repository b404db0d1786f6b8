// The privileged part of the service: small, and asked by a part that has no privilege and judges what programs record.
//
// Purpose     What record a program writes of itself is hostile. Whoever reads it (the analyser) has no privilege; the few things
//             that need one are done here, in another process that never sees such a record.
// Does        helper_protocol.h: lists the processes of a target, opens their executables, mappings and mapped code to be read,
//             connects to their control sockets, starts a target's command as the analyser's user, reads the configuration again,
//             opens the port where metrics are asked for.
// Refuses     All that the targets of the configuration, which it reads itself, do not name. A process is looked at before and after
//             something of it is opened: it may have become another program's.
// Privileges  CAP_SYS_PTRACE: /proc/PID/exe, maps and code of other users' processes. CAP_SETUID, CAP_SETGID: files and
//             sockets are opened as the process's own user, so that nothing is reached that this user could not reach, and commands
//             are started as the analyser's. No other capability, and no way to get one.
// Ends        When the other end of the socket is closed; what it started is asked to end (SIGTERM) then. Signals that end or reload
//             the service are the analyser's.
// Thread-safety: one thread, in a process of its own.
#pragma once

#include <string>

#include "monitor/process/descriptor.h"
#include "monitor/service/account.h"
#include "monitor/service/config.h"

namespace tsomon::service {

struct HelperTask {
  std::string config_file;
  ServiceConfig config;
  Account account;  // the analyser's
};

// Serves until the other end is closed.
void serve_as_helper(Descriptor socket, HelperTask task);

}  // namespace tsomon::service
