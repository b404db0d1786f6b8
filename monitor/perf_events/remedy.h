// What to do where the kernel refuses an event.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

namespace tsomon {

// For a missing permission (errno) the permission, for anything else what else can be missing.
std::string perf_remedy(int error, const std::string& otherwise);
// The same for uprobes, which perf_event_paranoid does not open up.
std::string uprobe_remedy(int error);

}  // namespace tsomon
