// Whether what the service relies on can be changed by others.
//
// Trusted     A file or folder that belongs to root or to the user, that others may not write, and neither may its group, unless
//             that is the owner's own one (it has the owner's number); no folder above it may be written by others, unless it
//             keeps them from removing what is not theirs (/tmp). Links are followed: what they lead to counts.
// Misses      Access control lists; who owns the folders above; what root does.
// Errors      kUnreadable, kEnvironment with the path, its mode, and what helps.
// Thread-safety: pure functions, but for the file system.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "monitor/service/config.h"
#include "tso/support/result.h"

namespace tsomon::service {

// Of a file that is there.
Result<void> check_trusted(const std::string& path, uid_t user);

// A configuration that is trusted; what was looked at is what is read. "-" is standard input, which is not looked at.
ConfigReading read_trusted_config(const std::string& file, uid_t user);

// What is wrong with the files and folders that it names, for a service that is `user`; those that are not there are left out. The
// store belongs to the user and is a folder itself, no link.
std::vector<Error> untrusted_places(const ServiceConfig& config, uid_t user);

}  // namespace tsomon::service
