// A process that runs idle programs (idle_process.h) for one that may not execute files.
//
// Purpose     The service's analyser may not (system_calls.h). This one may, as the same user and without any capability; it reads
//             nothing of what programs record.
// Ends        When the other end of the socket is closed; what runs then is ended, too.
// Errors      As IdleProcess::run(); kEnvironment: the launcher has ended, or the command is too long.
// Thread-safety: the launcher has one thread; the client's calls are one at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "monitor/process/descriptor.h"
#include "monitor/service/idle_process.h"
#include "tso/support/result.h"

namespace tsomon::service {

// Serves until the other end is closed.
void serve_as_launcher(const Descriptor& socket);

// The other end.
Result<IdleEnd> run_by_launcher(const Descriptor& socket, const IdleBounds& bounds,
                                const std::vector<std::string>& command,
                                const std::function<bool()>& stopped);

}  // namespace tsomon::service
