// Which system calls the unprivileged part of the service may make (seccomp, by libseccomp).
//
// Allowed     What it was seen to need: files by name and descriptor, memory, threads of its own, time, signals to itself, sockets of
//             the machine alone (systemd is told by one).
// Killed      Calls that only an attacker makes: to execute a file, to look into or change other processes, to load code into
//             the kernel, to change users, mounts or namespaces. The process ends at once (SIGSYS), and the kernel logs it.
// EPERM       Everything else, logged by the kernel: a library may ask for something that is new to this list, and go on without it;
//             for a watching service that is better than its end. clone3 is not there (ENOSYS), as its flags cannot be looked at:
//             the C library then uses clone, with which threads can be made, and nothing else.
// Errors      kEnvironment: the kernel has no filters.
// Thread-safety: before other threads begin; they have it, too.
#pragma once

#include "tso/support/result.h"

namespace tsomon::service {

Result<void> confine_system_calls();

}  // namespace tsomon::service
