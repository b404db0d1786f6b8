// Which parts of the service have which privileges.
//
// Alone       Started by a user who is not root it is one process, which may what that user may.
// Separated   Started by root it is three: a helper that keeps three capabilities (helper.h), and an analyser, this process, which does
//             all else as the user that the configuration names, without any capability, without a way to get one, and with few
//             system calls (system_calls.h). Without a name it stays root, whose files it may still write: a note says so. As the
//             analyser may execute nothing, a launcher, which has no privilege either, runs analyses of kept slices (idle_launcher.h).
// The store   Where it is not there it is made for the user before privileges are given up.
// Errors      kUsage: no such user; another user's monitor. kEnvironment: privileges cannot be given up; a file or folder that others may
//             change (trusted_file.h).
// Thread-safety: before other threads begin.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "monitor/service/config.h"
#include "monitor/service/target_access.h"
#include "tso/support/result.h"

namespace tsomon::service {

struct Separation {
  std::unique_ptr<ServiceAccess> access;
  std::vector<std::string> notes;
};

// `config`: of the file, which is read again when somebody asks for it.
Result<Separation> separate(const std::string& config_file, const ServiceConfig& config);

}  // namespace tsomon::service
