// Which system calls the unprivileged parts of the service may make (seccomp, by libseccomp).
//
// Analyser    As below. It makes sockets of the Unix kind alone; the port where metrics are asked for is opened for it.
// Launcher    The same, and what starting a program, its priority and its bounds need; those that it starts have its list.
// Allowed     What it was seen to need: files by name and descriptor, memory, threads of its own, time, signals to itself, sockets of
//             the machine alone (systemd is told by one).
// Killed      Calls that only an attacker makes: to execute a file, to look into or change other processes, to load code into
//             the kernel, to change users, mounts or namespaces. The process ends at once (SIGSYS), and the kernel logs it.
// EPERM       Everything else, logged by the kernel: a library may ask for something that is new to this list, and go on without it;
//             for a watching service that is better than its end. clone3 is not there (ENOSYS), as its flags cannot be looked at:
//             the C library then uses clone, with which threads can be made, and nothing else.
// Errors      An errno value: the kernel has no filters.
// Thread-safety: before other threads begin; they have it, too.
#pragma once

#include <cstdint>

namespace tsomon::service {

enum class Confined : uint8_t { kAnalyser, kLauncher };

// 0, or an errno value.
int confine_system_calls(Confined who);

}  // namespace tsomon::service
