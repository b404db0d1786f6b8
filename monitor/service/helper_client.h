// The service's side of its helper (helper.h).
//
// Ends        When the helper does, or does not answer for ten seconds: every call fails from then on, and ended() says why.
// Thread-safety: calls are one at a time, for all targets together.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/target_access.h"

namespace tsomon::service {

// `helper`: a child of this process, at the other end of the socket. It is waited for when this goes. `config_file`: in messages.
std::unique_ptr<ServiceAccess> helped_service_access(Descriptor socket, pid_t helper,
                                                     std::string config_file);

}  // namespace tsomon::service
