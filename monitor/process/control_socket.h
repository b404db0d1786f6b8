// A connection to the control socket of a program built with --dormant (monitor/probe/control.h).
//
// Whose       The socket's owner is asked of the kernel: a process that has taken another one's name gets no request.
// Errors      kUnreadable: no such process. kUsage: the folder's path is too long. kEnvironment: it does not answer; the message
//             says what to do.
// Thread-safety: calls are independent.
#pragma once

#include <string>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "tso/support/result.h"

namespace tsomon::attach {

// `folder`: of the socket; empty: its abstract name. Does not wait. Records and descriptors go over it (SOCK_SEQPACKET).
Result<Descriptor> connect_to_control(pid_t pid, const std::string& folder);

}  // namespace tsomon::attach
