// The service's side of its helper (helper.h) and its launcher (idle_launcher.h).
//
// Ends        When one of the two does, or the helper does not answer for ten seconds: every call fails from then on, and ended()
//             says why.
// Thread-safety: calls are one at a time, for all targets together; those of the launcher for themselves.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "monitor/process/descriptor.h"
#include "monitor/service/target_access.h"

namespace tsomon::service {

// A child of this process, at the other end of the socket. It ends when that is closed.
struct ServicePart {
  Descriptor socket;
  pid_t pid = -1;  // none: it is not there
};

// The parts are waited for when this goes. `launcher`: idle_launcher.h. `config_file`: in messages.
std::unique_ptr<ServiceAccess> helped_service_access(ServicePart helper, ServicePart launcher,
                                                     std::string config_file);

}  // namespace tsomon::service
